"""The experiments of MuLER (Karidi, Choshen, Patel and Abend): hybrids, random features, rare features, bad taggers."""
