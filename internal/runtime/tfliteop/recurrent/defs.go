package recurrent

import (
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "SVDF", Types: layer.ByteTypes[:2], Infer: inferSVDF, Prepare: prepareSVDF},
		{Name: "LSTM", Types: layer.LstmTypes, Infer: inferLSTM, Prepare: prepareLSTM},
		{Name: "UNIDIRECTIONAL_SEQUENCE_LSTM", Types: layer.LstmTypes, Infer: inferLSTM, Prepare: prepareLSTM},
		{Name: "BIDIRECTIONAL_SEQUENCE_LSTM", Types: layer.FloatOnly, Infer: func(c *op.Call) error { return inferBoth(c, 8, 25, 1) }, Prepare: prepareBothLSTM},
		{Name: "RNN", Types: layer.FloatOnly, Infer: inferRNN, Prepare: prepareRNN},
		{Name: "UNIDIRECTIONAL_SEQUENCE_RNN", Types: layer.FloatOnly, Infer: inferRNN, Prepare: prepareRNN},
		{Name: "BIDIRECTIONAL_SEQUENCE_RNN", Types: layer.FloatOnly, Infer: func(c *op.Call) error { return inferBoth(c, 1, 5, 0) }, Prepare: prepareBothRNN},
	}
	return layer.InTFLite(defs)
}
