package describe

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// Options lists an operator's options, none for operators without options worth showing. TFLite
// operators have those of the MLTK profiler in its order, with strides and filters as width x
// height:
//
//	padding same, stride 2x2, activation relu
//
// ONNX operators list what differs from the default, with sizes in the order of the axes:
//
//	kernel 3x3, stride 2x2, pads 1,1,1,1, group 32
func Options(n *graph.Node) []profile.Option {
	switch n.Domain {
	case graph.TFLite:
		return liteOptions(n)
	case graph.TFLiteCustom:
		return nil
	}
	return onnxOptions(n)
}

func liteOptions(n *graph.Node) []profile.Option {
	a := n.Attrs
	lower := func(name, def string) string { return strings.ToLower(a.Str(name, def)) }
	pair := func(key, w, h string, def int) profile.Option {
		return profile.Option{Key: key, Value: fmt.Sprintf("%dx%d", a.Int(w, def), a.Int(h, def))}
	}
	padding := profile.Option{Key: "padding", Value: lower("padding", "SAME")}
	stride := pair("stride", "stride_w", "stride_h", 1)
	act := profile.Option{Key: "activation", Value: lower("fused_activation_function", "NONE")}
	var dilation []profile.Option
	if d := pair("dilation", "dilation_w_factor", "dilation_h_factor", 1); d.Value != "1x1" {
		dilation = append(dilation, d)
	}
	switch n.Op {
	case "CONV_2D":
		return slices.Concat([]profile.Option{padding, stride}, dilation, []profile.Option{act})
	case "DEPTHWISE_CONV_2D":
		multiplier := profile.Option{Key: "multiplier", Value: strconv.Itoa(a.Int("depth_multiplier", 1))}
		return slices.Concat([]profile.Option{multiplier, padding, stride}, dilation, []profile.Option{act})
	case "TRANSPOSE_CONV":
		return []profile.Option{padding, stride, act}
	case "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D":
		return []profile.Option{padding, stride, pair("filter", "filter_width", "filter_height", 0), act}
	case "FULLY_CONNECTED", "ADD", "SUB", "MUL", "DIV", "SVDF", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "L2_NORMALIZATION":
		return []profile.Option{act}
	}
	return onnxOptions(n)
}

// shown lists the attributes relevant to a reader, with displayed name and default value.
var shown = []struct{ attr, name, skip string }{
	{"kernel_shape", "kernel", ""},
	{"strides", "stride", "1"},
	{"dilations", "dilation", "1"},
	{"pads", "pads", "0"},
	{"auto_pad", "auto_pad", "NOTSET"},
	{"group", "group", "1"},
	{"axis", "axis", ""},
	{"axes", "axes", ""},
	{"perm", "perm", ""},
	{"transA", "transA", "0"},
	{"transB", "transB", "0"},
	{"mode", "mode", ""},
	{"hidden_size", "hidden", ""},
	{"direction", "direction", "forward"},
	{"epsilon", "epsilon", ""},
	{"alpha", "alpha", "1"},
	{"beta", "beta", "1"},
	{"gamma", "gamma", ""},
	{"min", "min", ""},
	{"max", "max", ""},
	{"count_include_pad", "count_include_pad", "0"},
	{"ceil_mode", "ceil_mode", "0"},
	{"keepdims", "keepdims", "1"},
	{"equation", "equation", ""},
	{"to", "to", ""},
	{"block_size", "block", ""},
	{"blocksize", "block", ""},
	{"num_heads", "heads", ""},
	{"kv_num_heads", "kv_heads", ""},
	{"bits", "bits", ""},
	{"K", "K", ""},
	{"N", "N", ""},
	{"size", "size", ""},
	{"keep_dims", "keep_dims", "false"},
	{"adj_x", "adj_x", "false"},
	{"adj_y", "adj_y", "false"},
	{"align_corners", "align_corners", "false"},
	{"half_pixel_centers", "half_pixel_centers", "false"},
	{"batch_dims", "batch_dims", "0"},
	{"fused_activation_function", "activation", "NONE"},
	{"time_major", "time_major", "false"},
	{"num_splits", "splits", ""},
}

func onnxOptions(n *graph.Node) []profile.Option {
	var parts []profile.Option
	for _, s := range shown {
		v, ok := n.Attrs[s.attr]
		if !ok {
			continue
		}
		var text string
		all := true
		switch v := v.(type) {
		case int64:
			text = strconv.FormatInt(v, 10)
			if s.attr == "to" && n.Op == "Cast" {
				text = castName(v)
			}
		case bool:
			text = strconv.FormatBool(v)
		case float32:
			text = strconv.FormatFloat(float64(v), 'g', -1, 32)
			if math.IsNaN(float64(v)) {
				continue
			}
		case string:
			text = v
		case []int64:
			sep := ","
			if s.attr == "kernel_shape" || s.attr == "strides" || s.attr == "dilations" {
				sep = "x"
			}
			words := make([]string, len(v))
			for i, x := range v {
				words[i] = strconv.FormatInt(x, 10)
				all = all && words[i] == s.skip
			}
			if all && s.skip != "" {
				continue
			}
			text = strings.Join(words, sep)
		default:
			continue
		}
		if text != "" && text != s.skip && len(text) <= 80 {
			parts = append(parts, profile.Option{Key: s.name, Value: strings.ToLower(text)})
		}
	}
	return parts
}

// bounds lists the limits of a Clip that reads them as constants, as older versions have them in
// attributes.
func bounds(g *graph.Graph, n *graph.Node) (out []profile.Option) {
	if n.Domain != graph.ONNX || n.Op != "Clip" {
		return nil
	}
	for k, key := range []string{"min", "max"} {
		if k+1 >= len(n.Inputs) || n.Inputs[k+1] < 0 {
			continue
		}
		if c := g.Values[n.Inputs[k+1]].Const; c.Known() && c.Len() == 1 && c.Type.IsNumber() {
			out = append(out, profile.Option{Key: key, Value: strconv.FormatFloat(tensor.At(c, 0), 'g', 6, 64)})
		}
	}
	return out
}

// castName names the element type of Cast's attribute.
func castName(v int64) string {
	names := [...]string{
		"", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64", "uint32", "uint64",
		"complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1",
	}
	if v > 0 && int(v) < len(names) {
		return names[v]
	}
	return strconv.FormatInt(v, 10)
}
