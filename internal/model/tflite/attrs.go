package tflite

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// attributes decodes the option tables and custom options of an operator.
func (p *parser) attributes(t flatbuffer.Table, n *graph.Node) graph.Attrs {
	a := graph.Attrs{}
	if n.Domain == graph.TFLiteCustom {
		b, _ := t.Bytes(5, "custom_options")
		if off := t.Uint64(9, "large_custom_options_offset", 0); off > 1 {
			size := t.Uint64(10, "large_custom_options_size", 0)
			if off > uint64(len(p.data)) || size > uint64(len(p.data))-off {
				t.Fail("large_custom_options_offset", "%d bytes at byte %d lie outside the file of %d bytes: truncated or damaged", size, off, len(p.data))
				return a
			}
			b = p.data[off : off+size : off+size]
		}
		if b != nil {
			a["custom_options"] = b
		}
		return a
	}
	for _, u := range []struct {
		list   []options
		slot   int
		name   string
		second bool
	}{{builtinOptions, 3, "builtin_options", false}, {builtinOptions2, 11, "builtin_options_2", true}} {
		number := int(t.Uint8(u.slot, u.name+"_type", 0))
		if number == 0 {
			continue
		}
		o := t.Table(u.slot+1, u.name)
		if !o.Valid() {
			continue
		}
		own, known := optionsOf[n.Op]
		switch {
		case known && own.number == number && own.second == u.second:
			n.Table = own.name
			p.decode(o, own.fields, a)
		case number <= len(u.list) && len(u.list[number-1].fields) == 0:
			// Empty tables carry no information, whatever their name.
		case known && len(own.fields) == 0 && number <= len(u.list):
		default:
			p.warn("an option table of another operator", "Operator %d (%s) has an option table of type %d, which is not its own: ignored.", n.Index, n.Op, number)
		}
	}
	return a
}

// decode reads all fields of an option table.
func (p *parser) decode(t flatbuffer.Table, fields []field, a graph.Attrs) {
	for slot, f := range fields {
		switch f.kind {
		case kInt32:
			a[f.name] = int64(t.Int32(slot, f.name, int32(f.def)))
		case kInt64:
			a[f.name] = t.Int64(slot, f.name, f.def)
		case kFloat:
			a[f.name] = t.Float32(slot, f.name, 0)
		case kBool:
			a[f.name] = t.Bool(slot, f.name, f.def != 0)
		case kEnum:
			a[f.name] = f.enum.text(int64(t.Int8(slot, f.name, int8(f.def))))
		case kEnum32:
			a[f.name] = f.enum.text(int64(t.Uint32(slot, f.name, uint32(f.def))))
		case kString:
			a[f.name] = t.String(slot, f.name)
		case kBytes:
			if b, _ := t.Bytes(slot, f.name); b != nil {
				a[f.name] = b
			}
		case kInts:
			if t.Has(slot) {
				a[f.name] = widen(t.Ints(slot, f.name))
			}
		case kInt64s:
			if t.Has(slot) {
				a[f.name] = t.Int64s(slot, f.name)
			}
		case kFloats:
			if t.Has(slot) {
				a[f.name] = t.Float32s(slot, f.name)
			}
		case kBools:
			b, _ := t.Bytes(slot, f.name)
			if p.r.Spend(8*len(b), t) && b != nil {
				v := make([]int64, len(b))
				for i, x := range b {
					v[i] = int64(x)
				}
				a[f.name] = v
			}
		case kEnums:
			if t.Has(slot) {
				raw := t.Ints(slot, f.name)
				v := make([]string, len(raw))
				for i, x := range raw {
					v[i] = f.enum.text(int64(x))
				}
				a[f.name] = v
			}
		case kGraph:
			p.graphRef(t, slot, f, a)
		case kGraphs:
			p.graphRefs(t, slot, f, a)
		}
	}
}

func (p *parser) graphRef(t flatbuffer.Table, slot int, f field, a graph.Attrs) {
	i := int(t.Int32(slot, f.name, 0))
	if i < 0 || i >= p.graphs {
		t.Fail(f.name, "subgraph %d of %d", i, p.graphs)
		return
	}
	a[f.name] = graph.GraphRef(i)
}

func (p *parser) graphRefs(t flatbuffer.Table, slot int, f field, a graph.Attrs) {
	if !t.Has(slot) {
		return
	}
	raw := t.Ints(slot, f.name)
	v := make([]graph.GraphRef, len(raw))
	for k, i := range raw {
		if i < 0 || i >= p.graphs {
			t.Fail(f.name, "entry %d is subgraph %d of %d", k, i, p.graphs)
			return
		}
		v[k] = graph.GraphRef(i)
	}
	a[f.name] = v
}

// text returns the name of a number; numbers from newer schemas stay visible.
func (e enum) text(i int64) string {
	if i >= 0 && i < int64(len(e)) {
		return e[i]
	}
	return fmt.Sprintf("UNKNOWN_%d", i)
}
