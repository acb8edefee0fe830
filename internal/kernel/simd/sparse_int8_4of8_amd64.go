package simd

var sparse4of8Kernels = family[Sparse4of8]{
	VNNI: {
		Set:      VNNI,
		sums:     [12]func(t *IntTile){sifted1VNNI, sifted2VNNI, sifted3VNNI, sifted4VNNI, sifted5VNNI, sifted6VNNI, sifted7VNNI, sifted8VNNI, sifted9VNNI, sifted10VNNI, sifted11VNNI, sifted12VNNI},
		codes:    requantKernels{siftedCodes1VNNI, siftedCodes2VNNI, siftedCodes3VNNI, siftedCodes4VNNI, siftedCodes5VNNI, siftedCodes6VNNI, siftedCodes7VNNI, siftedCodes8VNNI, siftedCodes9VNNI, siftedCodes10VNNI, siftedCodes11VNNI, siftedCodes12VNNI},
		rescaled: requantKernels{siftedRescaled1VNNI, siftedRescaled2VNNI, siftedRescaled3VNNI, siftedRescaled4VNNI, siftedRescaled5VNNI, siftedRescaled6VNNI, siftedRescaled7VNNI, siftedRescaled8VNNI, siftedRescaled9VNNI, siftedRescaled10VNNI, siftedRescaled11VNNI, siftedRescaled12VNNI},
	},
}
