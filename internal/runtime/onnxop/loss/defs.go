package loss

import (
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	nll, sce := "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"
	drop := elem.RealDef("Dropout", inferDropout, prepareDropout[float32], prepareDropout[float64])
	drop.Stateful = true // random in training
	return []op.Def{
		elem.RealDef(nll, op.Needs(2, op.Infer(newClassLoss)), prepareClassLoss[float32](false), prepareClassLoss[float64](false)),
		elem.RealDef(sce, op.Needs(2, op.Infer(newClassLoss)), prepareClassLoss[float32](true), prepareClassLoss[float64](true)),
		drop,
	}
}
