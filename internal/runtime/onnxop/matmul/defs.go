package matmul

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

var matrixInts = []tensor.Type{tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64}

// Defs lists the operators of this package.
func Defs() []op.Def {
	codes := elem.Fusing(elem.RealDef("CodesMatMul", op.Needs(3, op.Infer(newCodesProduct)), prepareCodesMatMul, nil))
	codes.Domain = graph.Own
	return []op.Def{
		codes,
		{Name: "MatMul", Since: 1, Types: elem.FloatsAnd(matrixInts...), Infer: op.Needs(2, inferMatMul), Prepare: prepareMatMul, Fuses: true},
		{Name: "Gemm", Since: 1, Types: elem.FloatsAnd(matrixInts...), Infer: op.Needs(2, op.Infer(NewGemm)), Prepare: prepareGemmAny, Fuses: true, AcceptsUniform: takesSame},
		{Name: "Einsum", Since: 12, Infer: op.Infer(newEinsum), Prepare: prepareEinsum},
		{Name: "MatMulInteger", Since: 10, Types: elem.Bytes, Infer: op.Needs(2, inferMatMulInteger), Prepare: prepareMatMulInteger},
		{Name: "QLinearMatMul", Since: 10, Types: elem.Bytes, Infer: op.Needs(8, inferQLinearMatMul), Prepare: prepareQLinearMatMul},
	}
}
