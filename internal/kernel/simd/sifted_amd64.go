package simd

var sifted = family[Sifted]{
	VNNI: {
		Set:      VNNI,
		sums:     [12]func(t *IntTile){sifted1VNNI, sifted2VNNI, sifted3VNNI, sifted4VNNI, sifted5VNNI, sifted6VNNI, sifted7VNNI, sifted8VNNI, sifted9VNNI, sifted10VNNI, sifted11VNNI, sifted12VNNI},
		codes:    codeLoops{siftedCodes1VNNI, siftedCodes2VNNI, siftedCodes3VNNI, siftedCodes4VNNI, siftedCodes5VNNI, siftedCodes6VNNI, siftedCodes7VNNI, siftedCodes8VNNI, siftedCodes9VNNI, siftedCodes10VNNI, siftedCodes11VNNI, siftedCodes12VNNI},
		rescaled: codeLoops{siftedRescaled1VNNI, siftedRescaled2VNNI, siftedRescaled3VNNI, siftedRescaled4VNNI, siftedRescaled5VNNI, siftedRescaled6VNNI, siftedRescaled7VNNI, siftedRescaled8VNNI, siftedRescaled9VNNI, siftedRescaled10VNNI, siftedRescaled11VNNI, siftedRescaled12VNNI},
	},
}

//go:noescape
func sifted1VNNI(t *IntTile)

//go:noescape
func siftedCodes1VNNI(t *CodeTile)

//go:noescape
func siftedRescaled1VNNI(t *CodeTile)

//go:noescape
func sifted2VNNI(t *IntTile)

//go:noescape
func siftedCodes2VNNI(t *CodeTile)

//go:noescape
func siftedRescaled2VNNI(t *CodeTile)

//go:noescape
func sifted3VNNI(t *IntTile)

//go:noescape
func siftedCodes3VNNI(t *CodeTile)

//go:noescape
func siftedRescaled3VNNI(t *CodeTile)

//go:noescape
func sifted4VNNI(t *IntTile)

//go:noescape
func siftedCodes4VNNI(t *CodeTile)

//go:noescape
func siftedRescaled4VNNI(t *CodeTile)

//go:noescape
func sifted5VNNI(t *IntTile)

//go:noescape
func siftedCodes5VNNI(t *CodeTile)

//go:noescape
func siftedRescaled5VNNI(t *CodeTile)

//go:noescape
func sifted6VNNI(t *IntTile)

//go:noescape
func siftedCodes6VNNI(t *CodeTile)

//go:noescape
func siftedRescaled6VNNI(t *CodeTile)

//go:noescape
func sifted7VNNI(t *IntTile)

//go:noescape
func siftedCodes7VNNI(t *CodeTile)

//go:noescape
func siftedRescaled7VNNI(t *CodeTile)

//go:noescape
func sifted8VNNI(t *IntTile)

//go:noescape
func siftedCodes8VNNI(t *CodeTile)

//go:noescape
func siftedRescaled8VNNI(t *CodeTile)

//go:noescape
func sifted9VNNI(t *IntTile)

//go:noescape
func siftedCodes9VNNI(t *CodeTile)

//go:noescape
func siftedRescaled9VNNI(t *CodeTile)

//go:noescape
func sifted10VNNI(t *IntTile)

//go:noescape
func siftedCodes10VNNI(t *CodeTile)

//go:noescape
func siftedRescaled10VNNI(t *CodeTile)

//go:noescape
func sifted11VNNI(t *IntTile)

//go:noescape
func siftedCodes11VNNI(t *CodeTile)

//go:noescape
func siftedRescaled11VNNI(t *CodeTile)

//go:noescape
func sifted12VNNI(t *IntTile)

//go:noescape
func siftedCodes12VNNI(t *CodeTile)

//go:noescape
func siftedRescaled12VNNI(t *CodeTile)
