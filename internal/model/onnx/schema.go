package onnx

import "github.com/opmeter/opmeter/internal/model/tensor"

// Field numbers of the ONNX schema, by message.
const (
	modelIRVersion       = 1
	modelProducer        = 2
	modelProducerVersion = 3
	modelDoc             = 6
	modelGraph           = 7
	modelOpsetImport     = 8
	modelMetadata        = 14
	modelTraining        = 20
	modelFunctions       = 25

	opsetDomain  = 1
	opsetVersion = 2

	entryKey   = 1
	entryValue = 2

	graphNode        = 1
	graphName        = 2
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	graphValueInfo   = 13
	graphSparse      = 15

	nodeInput     = 1
	nodeOutput    = 2
	nodeName      = 3
	nodeOpType    = 4
	nodeAttribute = 5
	nodeDomain    = 7
	nodeOverload  = 8
	nodeMetadata  = 9

	attrName        = 1
	attrF           = 2
	attrI           = 3
	attrS           = 4
	attrT           = 5
	attrG           = 6
	attrFloats      = 7
	attrInts        = 8
	attrStrings     = 9
	attrTensors     = 10
	attrGraphs      = 11
	attrTP          = 14
	attrTypeProtos  = 15
	attrType        = 20
	attrRef         = 21
	attrSparse      = 22
	attrSparseSlice = 23

	infoName = 1
	infoType = 2

	typeTensor   = 1
	typeSequence = 4
	typeMap      = 5
	typeSparse   = 8
	typeOptional = 9

	tensorTypeElem  = 1
	tensorTypeShape = 2

	containerElem = 1
	mapTypeKey    = 1
	mapTypeValue  = 2

	shapeDim = 1
	dimValue = 1
	dimParam = 2

	tensorDims         = 1
	tensorDataType     = 2
	tensorSegment      = 3
	tensorFloatData    = 4
	tensorInt32Data    = 5
	tensorStringData   = 6
	tensorInt64Data    = 7
	tensorName         = 8
	tensorRawData      = 9
	tensorDoubleData   = 10
	tensorUint64Data   = 11
	tensorExternalData = 13
	tensorDataLocation = 14

	sparseValues  = 1
	sparseIndices = 2
	sparseDims    = 3

	functionName       = 1
	functionInput      = 4
	functionOutput     = 5
	functionAttribute  = 6
	functionNode       = 7
	functionOpset      = 9
	functionDomain     = 10
	functionAttrProto  = 11
	functionValueInfo  = 12
	functionOverload   = 13
	sequenceTensors    = 3
	sequenceSparse     = 4
	sequenceSequences  = 5
	sequenceMaps       = 6
	sequenceOptionals  = 7
	sequenceElemType   = 2
	optionalElemType   = 2
	optionalTensor     = 3
	optionalSparse     = 4
	optionalSequence   = 5
	optionalMap        = 6
	optionalOptional   = 7
	mapKeyType         = 2
	mapKeys            = 3
	mapStringKeys      = 4
	mapValues          = 5
	locationExternal   = 1
	maxDim             = 1 << 40 // larger declared dimensions are errors in the file
	maxDeclaredVersion = 1 << 20
)

// Attribute types.
const (
	kindUndefined = iota
	kindFloat
	kindInt
	kindString
	kindTensor
	kindGraph
	kindFloats
	kindInts
	kindStrings
	kindTensors
	kindGraphs
	kindSparse
	kindSparses
	kindTypeProto
	kindTypeProtos
)

// elemTypes maps the schema's data type numbers.
var elemTypes = [...]tensor.Type{
	1: tensor.Float32, 2: tensor.Uint8, 3: tensor.Int8, 4: tensor.Uint16, 5: tensor.Int16,
	6: tensor.Int32, 7: tensor.Int64, 8: tensor.String, 9: tensor.Bool, 10: tensor.Float16,
	11: tensor.Float64, 12: tensor.Uint32, 13: tensor.Uint64, 14: tensor.Complex64,
	15: tensor.Complex128, 16: tensor.BFloat16, 17: tensor.Float8E4M3FN,
	18: tensor.Float8E4M3FNUZ, 19: tensor.Float8E5M2, 20: tensor.Float8E5M2FNUZ,
	21: tensor.Uint4, 22: tensor.Int4, 23: tensor.Float4E2M1, 24: tensor.Float8E8M0,
	25: tensor.Uint2, 26: tensor.Int2,
}

// ElemType returns the element type for an ONNX data type number, as in attributes of operators
// such as Cast; Invalid if absent.
func ElemType(n int64) tensor.Type {
	if n < 0 || n >= int64(len(elemTypes)) {
		return tensor.Invalid
	}
	return elemTypes[n]
}

// dataType is the inverse of ElemType, 0 if ONNX has no such type.
func dataType(t tensor.Type) int64 {
	for i, e := range elemTypes {
		if e == t && e != tensor.Invalid {
			return int64(i)
		}
	}
	return 0
}
