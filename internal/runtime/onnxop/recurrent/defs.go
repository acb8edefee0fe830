package recurrent

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.RealDef("RNN", inferCell(1, "Tanh"), prepareRNN[float32], prepareRNN[float64]),
		elem.RealDef("GRU", inferCell(3, "Sigmoid", "Tanh"), prepareGRU[float32], prepareGRU[float64]),
		elem.RealDef("LSTM", inferCell(4, "Sigmoid", "Tanh", "Tanh"), prepareLSTM[float32], prepareLSTM[float64]),
		elem.InDomain(graph.Microsoft, elem.RealDef("DynamicQuantizeLSTM", inferCell(4, "Sigmoid", "Tanh", "Tanh"), prepareDynamicQuantizeLSTM, nil))[0],
	}
}
