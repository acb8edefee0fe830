package simd

var codesVNNI = codeSet{
	quads:       codeLoops{quadsCodes1VNNI, quadsCodes2VNNI, quadsCodes3VNNI, quadsCodes4VNNI, quadsCodes5VNNI, quadsCodes6VNNI, quadsCodes7VNNI, quadsCodes8VNNI, quadsCodes9VNNI, quadsCodes10VNNI, quadsCodes11VNNI, quadsCodes12VNNI},
	few:         codeLoops{fewCodes1VNNI, fewCodes2VNNI, fewCodes3VNNI, fewCodes4VNNI, fewCodes5VNNI, fewCodes6VNNI, fewCodes7VNNI, fewCodes8VNNI, fewCodes9VNNI, fewCodes10VNNI, fewCodes11VNNI, fewCodes12VNNI},
	rescaled:    codeLoops{quadsRescaled1VNNI, quadsRescaled2VNNI, quadsRescaled3VNNI, quadsRescaled4VNNI, quadsRescaled5VNNI, quadsRescaled6VNNI, quadsRescaled7VNNI, quadsRescaled8VNNI, quadsRescaled9VNNI, quadsRescaled10VNNI, quadsRescaled11VNNI, quadsRescaled12VNNI},
	fewRescaled: codeLoops{fewRescaled1VNNI, fewRescaled2VNNI, fewRescaled3VNNI, fewRescaled4VNNI, fewRescaled5VNNI, fewRescaled6VNNI, fewRescaled7VNNI, fewRescaled8VNNI, fewRescaled9VNNI, fewRescaled10VNNI, fewRescaled11VNNI, fewRescaled12VNNI},
	turned:      codeLoops{turnedRescaled1VNNI, turnedRescaled2VNNI, turnedRescaled3VNNI, turnedRescaled4VNNI, turnedRescaled5VNNI, turnedRescaled6VNNI, turnedRescaled7VNNI, turnedRescaled8VNNI, turnedRescaled9VNNI, turnedRescaled10VNNI, turnedRescaled11VNNI, turnedRescaled12VNNI},
}

//go:noescape
func quadsCodes1VNNI(t *CodeTile)

//go:noescape
func quadsCodes2VNNI(t *CodeTile)

//go:noescape
func quadsCodes3VNNI(t *CodeTile)

//go:noescape
func quadsCodes4VNNI(t *CodeTile)

//go:noescape
func quadsCodes5VNNI(t *CodeTile)

//go:noescape
func quadsCodes6VNNI(t *CodeTile)

//go:noescape
func quadsCodes7VNNI(t *CodeTile)

//go:noescape
func quadsCodes8VNNI(t *CodeTile)

//go:noescape
func quadsCodes9VNNI(t *CodeTile)

//go:noescape
func quadsCodes10VNNI(t *CodeTile)

//go:noescape
func quadsCodes11VNNI(t *CodeTile)

//go:noescape
func quadsCodes12VNNI(t *CodeTile)

//go:noescape
func quadsRescaled1VNNI(t *CodeTile)

//go:noescape
func quadsRescaled2VNNI(t *CodeTile)

//go:noescape
func quadsRescaled3VNNI(t *CodeTile)

//go:noescape
func quadsRescaled4VNNI(t *CodeTile)

//go:noescape
func quadsRescaled5VNNI(t *CodeTile)

//go:noescape
func quadsRescaled6VNNI(t *CodeTile)

//go:noescape
func quadsRescaled7VNNI(t *CodeTile)

//go:noescape
func quadsRescaled8VNNI(t *CodeTile)

//go:noescape
func quadsRescaled9VNNI(t *CodeTile)

//go:noescape
func quadsRescaled10VNNI(t *CodeTile)

//go:noescape
func quadsRescaled11VNNI(t *CodeTile)

//go:noescape
func quadsRescaled12VNNI(t *CodeTile)

//go:noescape
func turnedRescaled1VNNI(t *CodeTile)

//go:noescape
func turnedRescaled2VNNI(t *CodeTile)

//go:noescape
func turnedRescaled3VNNI(t *CodeTile)

//go:noescape
func turnedRescaled4VNNI(t *CodeTile)

//go:noescape
func turnedRescaled5VNNI(t *CodeTile)

//go:noescape
func turnedRescaled6VNNI(t *CodeTile)

//go:noescape
func turnedRescaled7VNNI(t *CodeTile)

//go:noescape
func turnedRescaled8VNNI(t *CodeTile)

//go:noescape
func turnedRescaled9VNNI(t *CodeTile)

//go:noescape
func turnedRescaled10VNNI(t *CodeTile)

//go:noescape
func turnedRescaled11VNNI(t *CodeTile)

//go:noescape
func turnedRescaled12VNNI(t *CodeTile)

//go:noescape
func fewCodes1VNNI(t *CodeTile)

//go:noescape
func fewCodes2VNNI(t *CodeTile)

//go:noescape
func fewCodes3VNNI(t *CodeTile)

//go:noescape
func fewCodes4VNNI(t *CodeTile)

//go:noescape
func fewCodes5VNNI(t *CodeTile)

//go:noescape
func fewCodes6VNNI(t *CodeTile)

//go:noescape
func fewCodes7VNNI(t *CodeTile)

//go:noescape
func fewCodes8VNNI(t *CodeTile)

//go:noescape
func fewCodes9VNNI(t *CodeTile)

//go:noescape
func fewCodes10VNNI(t *CodeTile)

//go:noescape
func fewCodes11VNNI(t *CodeTile)

//go:noescape
func fewCodes12VNNI(t *CodeTile)

//go:noescape
func fewRescaled1VNNI(t *CodeTile)

//go:noescape
func fewRescaled2VNNI(t *CodeTile)

//go:noescape
func fewRescaled3VNNI(t *CodeTile)

//go:noescape
func fewRescaled4VNNI(t *CodeTile)

//go:noescape
func fewRescaled5VNNI(t *CodeTile)

//go:noescape
func fewRescaled6VNNI(t *CodeTile)

//go:noescape
func fewRescaled7VNNI(t *CodeTile)

//go:noescape
func fewRescaled8VNNI(t *CodeTile)

//go:noescape
func fewRescaled9VNNI(t *CodeTile)

//go:noescape
func fewRescaled10VNNI(t *CodeTile)

//go:noescape
func fewRescaled11VNNI(t *CodeTile)

//go:noescape
func fewRescaled12VNNI(t *CodeTile)
