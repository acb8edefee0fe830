package tpu

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
	"github.com/opmeter/opmeter/internal/record/tpu/names"
	"github.com/opmeter/opmeter/profile"
)

// layers are the model's operations, one layer each, in the order of the program.
type layers struct {
	r          *capture.Recording
	list       []profile.Layer
	hints      []runlog.Hint
	at         map[layerKey]int32
	line       []int32 // the layer of each line of the log that begins a layer
	subnet     []int32 // the subnet of each layer
	byFunction bool    // no file names layers: layers are the functions of commands
	fromPlaces bool    // the layers come from tensor_location.json
	// checked counts commands with a layer in both the log and tensor_location.json, apart those on
	// which the files disagree, twice those that tensor_location.json assigns to two operations.
	checked, apart, twice int
	// lineOf is the line of each layer in the program, -1 for none. Both are computed on demand.
	lineOf []int64
	items  map[itemKey]int32 // the estimate's items
}

// layerKey is a layer: the operation's line in a subnet, or a kind of command.
type layerKey struct {
	subnet int32
	id     int64
	name   string
}

const maxModelLayers = 500_000

// find returns the index of a layer. It creates the layer if it is missing.
func (ls *layers) find(k layerKey, begin func(*profile.Layer, *runlog.Hint)) int32 {
	if i, ok := ls.at[k]; ok {
		return i
	}
	if len(ls.list) >= maxModelLayers {
		return -1
	}
	i := int32(len(ls.list))
	ls.at[k] = i
	ls.list, ls.hints, ls.subnet = append(ls.list, profile.Layer{State: profile.Ran}), append(ls.hints, runlog.Hint{}), append(ls.subnet, k.subnet)
	begin(&ls.list[i], &ls.hints[i])
	return i
}

// newLayers returns the layers in the files of the compiler.
func newLayers(r *capture.Recording) *layers {
	ls := &layers{r: r, at: map[layerKey]int32{}}
	switch {
	case len(r.Log.Layers) > 0:
		ls.ofLog()
	case r.Locations != nil && len(r.Locations.List) > 0:
		ls.fromPlaces = true
		ls.ofPlaces()
	case r.Estimate != nil && slices.ContainsFunc(r.Estimate.Items, func(x compiler.Item) bool { return x.Layer >= 0 }):
		ls.ofEstimate()
	}
	ls.byFunction = len(ls.list) == 0
	return ls
}

func (ls *layers) ofLog() {
	l := ls.r.Log
	ls.line = make([]int32, len(l.Layers))
	for i := range l.Layers {
		line := &l.Layers[i]
		ls.line[i] = ls.find(layerKey{subnet: line.Subnet, id: line.ID, name: unnumbered(line)}, func(p *profile.Layer, h *runlog.Hint) {
			p.Op = line.Type
			if n, err := strconv.ParseUint(line.Type, 10, 32); err == nil && !l.Named {
				p.Op = names.Of(names.Layer, n)
			}
			ls.named(p, h, line.ID, line.Name)
			if scope := [...]string{compiler.Local: "local", compiler.Global: "global", compiler.Move: ""}[line.Scope]; scope != "" {
				p.Options = append(p.Options, profile.Option{Key: "memory", Value: scope})
			}
			ls.tensors(p, l.Tensors[line.FirstTensor:line.EndTensor])
		})
	}
}

// unnumbered distinguishes layers without a number by their type.
func unnumbered(line *compiler.LayerLine) string {
	if line.ID >= 0 {
		return ""
	}
	return line.Type
}

func (ls *layers) ofPlaces() {
	for _, x := range ls.r.Locations.List {
		ls.find(layerKey{subnet: x.Subnet, id: x.Line}, func(p *profile.Layer, h *runlog.Hint) {
			p.Op = x.Op
			if _, op, ok := strings.Cut(p.Op, "."); ok && op != "" { // without the dialect
				p.Op = op
			}
			name := ""
			if len(x.Results) > 0 {
				name = x.Results[0].Name
			}
			ls.named(p, h, x.Line, name)
			p.Inputs, p.Outputs = placed(x.Operands), placed(x.Results)
		})
	}
}

func placed(list []compiler.Place) []profile.Tensor {
	var out []profile.Tensor
	for _, p := range list {
		if p.Name == "" && p.Type == "" {
			out = append(out, profile.Tensor{Absent: true})
			continue
		}
		out = append(out, profile.Tensor{Name: p.Name, DType: elementType(p.Type), Shape: p.Shape})
	}
	return out
}

func (ls *layers) ofEstimate() {
	e := ls.r.Estimate
	for _, x := range e.Items {
		if x.Layer < 0 {
			continue
		}
		ls.find(layerKey{subnet: ls.subnetOfTable(x.Table), id: x.Layer}, func(p *profile.Layer, h *runlog.Hint) {
			p.Op = e.Names[x.Op]
			ls.named(p, h, x.Layer, "")
		})
	}
}

// subnetOfTable returns the subnet of a table of the estimate. Tables follow the order of the log's
// subnets.
func (ls *layers) subnetOfTable(table int32) int32 {
	n := int32(-1)
	last := int32(-1)
	for _, l := range ls.r.Log.Layers {
		if s := l.Subnet; s != last {
			last = s
			if n++; n == table {
				return s
			}
		}
	}
	return table
}

// named sets the name of a layer: that of the original operation if the program has it.
func (ls *layers) named(p *profile.Layer, h *runlog.Hint, id int64, name string) {
	if prog := ls.r.Program; prog != nil && id >= 0 {
		if op, ok := prog.Ops[id]; ok && op.Location != "" && (op.Name == p.Op || !ls.r.Log.Named) {
			name = op.Location
		}
	}
	if p.Op == "" {
		p.Op = "unknown"
	}
	if name != "" {
		if p.Op != "Load" && p.Op != "Store" {
			// Copies have the names of the tensors that they move, which are outputs of other layers.
			h.Nodes, h.Outputs = []string{name}, []string{name}
		}
	} else if id >= 0 {
		name = fmt.Sprintf("%s_%d", p.Op, id)
	}
	p.Name = name
	if id >= 0 {
		p.Options = append(p.Options, profile.Option{Key: "line", Value: strconv.FormatInt(id, 10)})
	}
}

func (ls *layers) tensors(p *profile.Layer, list []compiler.TensorLine) {
	for _, t := range list {
		x := profile.Tensor{DType: codeType(t.DType), Shape: t.Shape, Constant: t.Const}
		if prog := ls.r.Program; prog != nil {
			if op, ok := prog.Ops[t.ID]; ok && t.ID >= 0 {
				x.Name = op.Location
			} else if k := -t.ID - 1; k >= 0 && k < int64(len(prog.Inputs)) {
				x.Name = prog.Inputs[k]
			}
		}
		if t.In {
			p.Inputs = append(p.Inputs, x)
		} else {
			p.Outputs = append(p.Outputs, x)
		}
	}
}

// codeType returns the element type of a number in the log, "" for unknown numbers.
func codeType(code int) string {
	list := [...]string{"float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "bfloat16"}
	if code >= 0 && code < len(list) {
		return list[code]
	}
	return ""
}

func elementType(s string) string {
	if t, ok := map[string]string{
		"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i8": "int8", "si8": "int8", "ui8": "uint8", "i16": "int16", "si16": "int16",
		"ui16": "uint16", "i32": "int32", "si32": "int32", "ui32": "uint32", "i64": "int64", "si64": "int64", "i4": "int4", "si4": "int4", "ui4": "uint4", "i1": "bool",
		"f8E4M3FN": "float8e4m3fn", "f8E5M2": "float8e5m2",
	}[s]; ok {
		return t
	}
	return s
}

// member contains the layer of each record of an engine, and the visit of the layer.
type member struct {
	layer, visit []int32
}

func (ls *layers) assign(u capture.Unit) member {
	e, locations := u.Engine, ls.r.Locations
	m := member{slices.Repeat([]int32{-1}, e.Len()), slices.Repeat([]int32{-1}, e.Len())}
	subnet := u.Step.Subnet()
	places := ls.places(u)
	for i := range m.layer {
		if e.Class[i] != capture.Work {
			continue
		}
		k := int(e.Command[i])
		at := int32(-1)
		if places != nil && k >= 0 {
			at = places[k]
		}
		if k >= 0 && k < len(e.Program.Lines) && !ls.byFunction {
			if line := ls.r.Log.Commands.Line[e.Program.Lines[k]]; line >= 0 {
				m.layer[i], m.visit[i] = ls.line[line], line
				if at >= 0 {
					ls.checked++
					if locations.List[at].Line != ls.r.Log.Layers[line].ID {
						ls.apart++
					}
				}
			}
		} else if at >= 0 {
			if x, ok := ls.at[layerKey{subnet: locations.List[at].Subnet, id: locations.List[at].Line}]; ok {
				m.layer[i], m.visit[i] = x, at
			}
		}
		if m.layer[i] < 0 && places == nil {
			m.layer[i] = ls.estimated(u, k)
		}
		if m.layer[i] < 0 {
			m.layer[i] = ls.issued(subnet, e, i)
		}
		if m.layer[i] < 0 && ls.byFunction {
			m.layer[i] = ls.function(e, i)
		}
	}
	return m
}

// places returns the entry of tensor_location.json of each command of a program, -1 for none. It
// returns nil without the file.
func (ls *layers) places(u capture.Unit) []int32 {
	l := ls.r.Locations
	if l == nil || u.Program.Len() == 0 || u.Kind != command.TIU && u.Kind != command.GDMA {
		return nil
	}
	side := 0
	if u.Kind != command.TIU {
		side = 1
	}
	out := slices.Repeat([]int32{-1}, u.Program.Len())
	for i, x := range l.List {
		if x.Subnet != u.Step.Subnet() || int(x.Core) != u.Core.Index {
			continue
		}
		for k := x.Before[side]; k < min(x.After[side], int64(len(out))); k++ {
			if out[k] >= 0 {
				ls.twice++
				continue
			}
			out[k] = int32(i)
		}
	}
	return out
}

// estimated returns the layer of a command in the compiler's estimate, if neither log nor places
// name layers. The numbers of items are those of the commands of the first core.
func (ls *layers) estimated(u capture.Unit, k int) int32 {
	if ls.r.Estimate == nil || len(ls.r.Log.Layers) > 0 || k < 0 || u.Core.Index > 0 || u.Kind != command.TIU && u.Kind != command.GDMA {
		return -1
	}
	if ls.items == nil {
		ls.items = map[itemKey]int32{}
		for _, x := range ls.r.Estimate.Items {
			at := itemKey{ls.subnetOfTable(x.Table), x.DMA, x.BD}
			if x.DMA {
				at.own = x.GDMA
			}
			if l, ok := ls.at[layerKey{subnet: at.subnet, id: x.Layer}]; ok {
				if _, twice := ls.items[at]; !twice {
					ls.items[at] = l
				}
			}
		}
	}
	if l, ok := ls.items[itemKey{u.Step.Subnet(), u.Kind == command.GDMA, uint32(k + 1)}]; ok {
		return l
	}
	return -1
}

// itemKey identifies an item of the estimate by its engine and its number.
type itemKey struct {
	subnet int32
	dma    bool
	own    uint32
}

// issued returns the layer of a command that the firmware issued, -1 if unknown.
func (ls *layers) issued(subnet int32, e *capture.Engine, i int) int32 {
	k := e.Issue[i]
	if k < 0 || e.Issued[k].Layer == nil {
		return -1
	}
	f := e.Issued[k].Layer
	// The compiler's own id, else the firmware's group.
	if x, ok := ls.at[layerKey{subnet: subnet, id: int64(f.Group)}]; ok {
		return x
	}
	return ls.find(layerKey{subnet: subnet, id: int64(f.Group), name: "firmware"}, func(p *profile.Layer, _ *runlog.Hint) {
		p.Op = firmwareLayer(*f)
		p.Name = fmt.Sprintf("%s_%d", p.Op, f.Group)
	})
}

func (ls *layers) function(e *capture.Engine, i int) int32 {
	name := functionName(e, i)
	return ls.find(layerKey{id: int64(e.Kind), name: name}, func(p *profile.Layer, _ *runlog.Hint) {
		p.Op, p.Name = name, fmt.Sprintf("%s %s", engineName(e), name)
		p.Options = []profile.Option{{Key: "all_commands_of", Value: engineName(e)}}
	})
}

func functionName(e *capture.Engine, i int) string {
	if k := int(e.Command[i]); k >= 0 {
		if c := e.Program.Command(k); c != nil {
			return c.Name()
		}
		return fmt.Sprintf("function %d", e.Program.Func[k])
	}
	if k := e.Issue[i]; k >= 0 {
		x := &e.Issued[k]
		switch {
		case x.Cmd != nil:
			return x.Cmd.Name()
		case x.Func >= 0:
			return fmt.Sprintf("function %d", x.Func)
		}
	}
	if e.Kind == command.TIU {
		return "unknown"
	}
	from, to := e.Ports(i)
	switch {
	case from == command.NoSpace && to == command.NoSpace:
		return "unknown"
	case from == command.NoSpace:
		return "fill " + to.String()
	case to == command.NoSpace:
		return "read " + from.String()
	}
	return from.String() + " to " + to.String()
}

func engineName(e *capture.Engine) string {
	if e.Kind == command.CDMA {
		return fmt.Sprintf("CDMA port %d", e.Port)
	}
	return strings.ToUpper(e.Kind.String())
}

func (ls *layers) hostLayer(s *capture.Step) int32 {
	return ls.find(layerKey{subnet: int32(s.Info.Subnet), id: -2, name: "host"}, func(p *profile.Layer, _ *runlog.Hint) {
		switch s.Info.Kind {
		case block.OnCPU:
			p.Op = names.Of(names.CPU, s.Info.Extra)
		case block.Merge:
			p.Op = "MERGE"
		case block.Switch:
			p.Op = "SWITCH"
			p.Options = append(p.Options, profile.Option{Key: "condition", Value: strconv.FormatUint(s.Info.Extra, 10)})
		default:
			p.Op = "subnet"
		}
		p.Name = fmt.Sprintf("subnet %d %s", s.Info.Subnet, p.Op)
		p.Placement = &profile.Placement{On: profile.CPU}
	})
}

// groups finds the layer group of a line.
type groups struct {
	list []compiler.Group
}

// of returns the group of a line, -1 for none.
func (g groups) of(line int64) int {
	i := sort.Search(len(g.list), func(i int) bool { return g.list[i].End > line })
	if i < len(g.list) && g.list[i].Begin < line {
		return i
	}
	return -1
}
