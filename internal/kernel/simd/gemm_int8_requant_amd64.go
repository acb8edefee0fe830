package simd

var requantVNNI = requantKernelSet{
	quads:       requantKernels{quadsCodes1VNNI, quadsCodes2VNNI, quadsCodes3VNNI, quadsCodes4VNNI, quadsCodes5VNNI, quadsCodes6VNNI, quadsCodes7VNNI, quadsCodes8VNNI, quadsCodes9VNNI, quadsCodes10VNNI, quadsCodes11VNNI, quadsCodes12VNNI},
	few:         requantKernels{fewCodes1VNNI, fewCodes2VNNI, fewCodes3VNNI, fewCodes4VNNI, fewCodes5VNNI, fewCodes6VNNI, fewCodes7VNNI, fewCodes8VNNI, fewCodes9VNNI, fewCodes10VNNI, fewCodes11VNNI, fewCodes12VNNI},
	rescaled:    requantKernels{quadsRescaled1VNNI, quadsRescaled2VNNI, quadsRescaled3VNNI, quadsRescaled4VNNI, quadsRescaled5VNNI, quadsRescaled6VNNI, quadsRescaled7VNNI, quadsRescaled8VNNI, quadsRescaled9VNNI, quadsRescaled10VNNI, quadsRescaled11VNNI, quadsRescaled12VNNI},
	fewRescaled: requantKernels{fewRescaled1VNNI, fewRescaled2VNNI, fewRescaled3VNNI, fewRescaled4VNNI, fewRescaled5VNNI, fewRescaled6VNNI, fewRescaled7VNNI, fewRescaled8VNNI, fewRescaled9VNNI, fewRescaled10VNNI, fewRescaled11VNNI, fewRescaled12VNNI},
	transposed:  requantKernels{turnedRescaled1VNNI, turnedRescaled2VNNI, turnedRescaled3VNNI, turnedRescaled4VNNI, turnedRescaled5VNNI, turnedRescaled6VNNI, turnedRescaled7VNNI, turnedRescaled8VNNI, turnedRescaled9VNNI, turnedRescaled10VNNI, turnedRescaled11VNNI, turnedRescaled12VNNI},
}
