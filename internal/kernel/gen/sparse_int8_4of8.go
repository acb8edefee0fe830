package main

// sifted writes products of fours with weights of which at most four of eight neighbours are not
// zero: a panel has these four, and behind them, of the same size, from which of the eight codes
// each takes its own.
func sifted(a *asm) {
	order := a.turnOrder()
	for r := 1; r <= 12; r++ {
		a.intTile(zmm, r, sieve, true)
		a.codeTile("siftedCodes", r, sieve, false, order)
		a.codeTile("siftedRescaled", r, sieve, true, order)
	}
}
