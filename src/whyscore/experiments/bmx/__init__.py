"""The experiments of BMX (Leiter, Nguyen and Eger 2022): the grid, SummEval, stability."""
