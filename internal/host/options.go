package host

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
)

// Options writes an operator's options in words. TFLite operators follow the
// layout of the MLTK profiler: "Padding:same stride:2x2 activation:relu", sizes
// as width x height.
func Options(n *graph.Node) string {
	if n.Domain == graph.TFLite || n.Domain == graph.TFLiteCustom {
		return liteOptions(n)
	}
	return onnxOptions(n)
}

func liteOptions(n *graph.Node) string {
	a := n.Attrs
	act := strings.ToLower(a.Str("fused_activation_function", "NONE"))
	window := fmt.Sprintf("Padding:%s stride:%dx%d", strings.ToLower(a.Str("padding", "")), a.Int("stride_w", 0), a.Int("stride_h", 0))
	switch n.Op {
	case "CONV_2D", "TRANSPOSE_CONV":
		s := window + " activation:" + act
		if w, h := a.Int("dilation_w_factor", 1), a.Int("dilation_h_factor", 1); w != 1 || h != 1 {
			s += fmt.Sprintf(" dilation:%dx%d", w, h)
		}
		return s
	case "DEPTHWISE_CONV_2D":
		s := fmt.Sprintf("Multiplier:%d padding:%s stride:%dx%d activation:%s", a.Int("depth_multiplier", 1),
			strings.ToLower(a.Str("padding", "")), a.Int("stride_w", 0), a.Int("stride_h", 0), act)
		if w, h := a.Int("dilation_w_factor", 1), a.Int("dilation_h_factor", 1); w != 1 || h != 1 {
			s += fmt.Sprintf(" dilation:%dx%d", w, h)
		}
		return s
	case "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D":
		return window + fmt.Sprintf(" filter:%dx%d activation:%s", a.Int("filter_width", 0), a.Int("filter_height", 0), act)
	}
	if a.Has("fused_activation_function") {
		return "Activation:" + act
	}
	return ""
}

// onnxAttrs are the attributes that say most about the work, in this order.
var onnxAttrs = []string{
	"kernel_shape", "strides", "pads", "auto_pad", "dilations", "group", "axis", "axes", "perm", "to", "mode",
	"hidden_size", "direction", "num_heads", "kv_num_heads", "transA", "transB", "keepdims", "equation", "bits", "block_size", "epsilon", "alpha",
}

func onnxOptions(n *graph.Node) string {
	var parts []string
	for _, name := range onnxAttrs {
		v, ok := n.Attrs[name]
		if !ok {
			continue
		}
		var s string
		switch v := v.(type) {
		case []int64:
			if trivial(name, v) {
				continue
			}
			p := make([]string, len(v))
			for i, x := range v {
				p[i] = fmt.Sprint(x)
			}
			s = strings.Join(p, "x")
		case string:
			if v == "NOTSET" || v == "" {
				continue
			}
			s = v
		case []byte:
			if s = string(v); s == "NOTSET" || s == "" {
				continue
			}
		case float32, int64, bool:
			s = fmt.Sprint(v)
			if name == "group" && s == "1" {
				continue
			}
		default:
			continue
		}
		parts = append(parts, name+":"+s)
	}
	return strings.Join(parts, " ")
}

// trivial reports whether a list only repeats the attribute's default.
func trivial(name string, v []int64) bool {
	def := int64(1)
	switch name {
	case "pads":
		def = 0
	case "strides", "dilations":
	default:
		return false
	}
	for _, x := range v {
		if x != def {
			return false
		}
	}
	return true
}
