package firmware

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// state returns the C expression of an input that an operator carries from run to run.
func (g *generator) state(st *step, k int, ctype string) (func() string, error) {
	id := st.task.Node.Inputs[k]
	v := g.values[id]
	if v == nil || v.initial == nil {
		return nil, unsupported("state in input %d that is not a variable", k)
	}
	return func() string { return fmt.Sprintf("(%s *)(arena + %d)", ctype, v.offset) }, nil
}

func (g *generator) svdf(st *step, r recipe.SVDF) error {
	c := &st.task.Call
	suffix, ctype, _ := ending(c.In[4].Type)
	if !c.Const(1) || !c.Const(2) || c.Has(3) && !c.Const(3) {
		return unsupported("weights that are computed while it runs")
	}
	state, err := g.state(st, 4, ctype)
	if err != nil {
		return err
	}
	bias := "0"
	if c.Has(3) {
		bias = "(const int32_t *)" + g.constant(st, 3).name
	}
	op := g.constantStruct(st, "k_svdf", fmt.Sprintf(
		".batch = %d, .in = %d, .filters = %d, .memory = %d, .units = %d, .rank = %d,\n.feature = (const int8_t *)%s, .time = %s, .bias = %s,\n"+
			".zero_in = %d, .zero_state = %d, .zero = %d, .mul_feature = %d, .shift_feature = %d, .mul_time = %d, .shift_time = %d, .state_min = %d, .state_max = %d",
		r.Batch, r.In, r.Filters, r.Memory, r.Units, r.Rank, g.constant(st, 1).name, g.constant(st, 2).name, bias,
		r.ZeroIn, r.ZeroState, r.Zero, r.Feature.M, r.Feature.Shift, r.Time.M, r.Time.Shift, r.StateMin, r.StateMax))
	g.emit(st, "svdf", "k_svdf_"+suffix, op, g.in(st, 0, "int8_t"), state, g.out(st, 0, "int8_t"))
	return nil
}

func (g *generator) lstm(st *step, r recipe.LSTM) error {
	suffix, ctype, _ := ending(st.task.Call.In[0].Type)
	hidden, err := g.state(st, r.Hidden, ctype)
	if err != nil {
		return err
	}
	cell, err := g.state(st, r.Cell, "int16_t")
	if err != nil {
		return err
	}
	gates := func(gs [4]recipe.Gate) (string, error) {
		var list []string
		for _, x := range gs {
			s, err := g.gate(st, x, r.Wide)
			if err != nil {
				return "", err
			}
			list = append(list, s)
		}
		return "{\n" + strings.Join(list, ",\n") + "}", nil
	}
	inputs, err := gates(r.Inputs)
	if err != nil {
		return err
	}
	recurrent, err := gates(r.Recurrent)
	if err != nil {
		return err
	}
	major := 0
	if r.TimeMajor {
		major = 1
	}
	op := g.constantStruct(st, "k_lstm", fmt.Sprintf(
		".batch = %d, .steps = %d, .in = %d, .cells = %d, .time_major = %d,\n.inputs = %s,\n.recurrent = %s,\n"+
			".mul_forget = %d, .shift_forget = %d, .mul_input = %d, .shift_input = %d, .mul_output = %d, .shift_output = %d, .mul_tanh = %d, .shift_tanh = %d,\n"+
			".clip = %d, .zero = %d, .min = %d, .max = %d, .table = %s",
		r.Batch, r.Steps, r.In, r.Cells, major, inputs, recurrent, r.Forget.M, r.Forget.Shift, r.Input.M, r.Input.Shift, r.Output.M, r.Output.Shift, r.TanhMul, r.TanhShift,
		r.Clip, r.ZeroHidden, r.Lo, r.Hi, g.sigmoid().name))
	fresh := g.scratch(r.Cells * width(st.task.Call.In[0].Type))
	g.emit(st, "lstm", "k_lstm_"+suffix, op, g.in(st, 0, ctype), hidden, cell,
		func() string { return fmt.Sprintf("(%s *)(arena + %d)", ctype, fresh.offset) }, g.out(st, 0, ctype))
	return nil
}

// scratch allocates scratch memory for the current step.
func (g *generator) scratch(n int) *value {
	v := &value{id: -1, bytes: n, first: len(g.steps), last: len(g.steps)}
	g.order = append(g.order, v)
	return v
}

// gate returns the initialiser of a k_gate.
func (g *generator) gate(st *step, r recipe.Gate, wide bool) (string, error) {
	t := st.task.Call.In[r.Weights]
	w, err := layer.Weights(t)
	if err != nil {
		return "", err
	}
	narrow, fits := signedWeights(w)
	if !fits {
		return "", unsupported("weights in input %d that do not fit 8 bits", r.Weights)
	}
	d := integers(g, "w", st.layer, 1, narrow, fmt.Sprintf("layer %d, %s: weights %s", st.layer, st.task.Node.Op, tensor.FormatShape(t.Shape)))
	size := 4
	if wide {
		size = 8
	}
	fold := integers(g, "b", st.layer, size, r.Fold, "biases")
	return fmt.Sprintf("{.weights = (const int8_t *)%s, .fold = %s, .columns = %d, .mul = %d, .shift = %d}", d.name, fold.name, r.K, r.Mul.M, r.Mul.Shift), nil
}
