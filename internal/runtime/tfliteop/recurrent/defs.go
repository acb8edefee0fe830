// Package recurrent implements TFLite's recurrent layers: RNN, LSTM and SVDF.
package recurrent

import (
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	lstm := func(name string) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: layer.LstmTypes}, shapeLSTM, inferLSTM, prepareLSTM)
	}
	rnn := func(name string) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: layer.FloatOnly}, shapeRNN, inferSequence, prepareRNN)
	}
	return layer.InTFLite([]op.Def{
		layer.Shaped(op.Def{Name: "SVDF", Types: layer.ByteTypes[:2]}, shapeSVDF, inferSVDF, prepareSVDF),
		lstm("LSTM"),
		lstm("UNIDIRECTIONAL_SEQUENCE_LSTM"),
		layer.Shaped(op.Def{Name: "BIDIRECTIONAL_SEQUENCE_LSTM", Types: layer.FloatOnly}, shapeBoth(8, 25, 1), inferBoth, prepareBoth([3]int{39, 43, 47}, lstmHalf)),
		rnn("RNN"),
		rnn("UNIDIRECTIONAL_SEQUENCE_RNN"),
		layer.Shaped(op.Def{Name: "BIDIRECTIONAL_SEQUENCE_RNN", Types: layer.FloatOnly}, shapeBoth(1, 5, 0), inferBoth, prepareBoth([3]int{9, 10, 11}, rnnHalf)),
	})
}
