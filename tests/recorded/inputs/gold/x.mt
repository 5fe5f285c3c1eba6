The cat sat on a mat.
I have a cat.
On 3 May 2021, 25 guests came to Berlin.
She has read the book.
The train leaves at 7:45 o'clock.
