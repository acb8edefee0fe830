package openvino

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits on a graph. The engine wrote the file itself, but the contents come from a model that
// may be malicious.
const (
	maxGraphBytes = 256 << 20
	maxLayers     = 200_000
	maxEdges      = 2_000_000
	maxPorts      = 2_000_000
	maxDepth      = 64
	maxNames      = 64 << 20 // bytes of all names
)

// layer is a node of a graph that OpenVINO wrote.
type layer struct {
	name, op string
	origins  []string // the nodes as read that went into an executed one
	constant bool
	outs     []outPort
	from     []end // inputs in order: layer and output
	to       []int // layers that read it
}

// outPort is an output of a layer: names of tensors, dimensions.
type outPort struct {
	id    int
	names []string
	dims  []int64
}

// end is an output of a layer, by indices.
type end struct{ layer, out int }

// irGraph is a graph in OpenVINO's own format (IR, version 10 or 11), without the bodies of
// control flow. Layers are in file order, which is an execution order.
type irGraph struct {
	layers []layer
	byName map[string]int
}

var errLarge = errors.New("the graph is larger than what is read")

// readIR reads the XML of a graph.
//
// Source of the format: src/core/src/xml_util and src/core/src/pass/serialize.cpp of the OpenVINO
// project.
func readIR(r io.Reader) (*irGraph, error) {
	d := xml.NewDecoder(io.LimitReader(r, maxGraphBytes))
	p := irParser{g: &irGraph{byName: map[string]int{}}, ids: map[int]int{}, current: -1}
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			err = p.start(t)
		case xml.EndElement:
			p.end()
		case xml.CharData:
			p.text(t)
		}
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
		}
	}
	if len(p.path) > 0 || !p.whole {
		return nil, errors.New("the graph is cut")
	}
	p.connect()
	return p.g, nil
}

// irParser is the state of the parser.
type irParser struct {
	g       *irGraph
	path    []string
	ids     map[int]int // layers by their numbers in the file
	inputs  [][]int     // numbers of the input ports of each layer, in order
	edges   [][4]int
	current int // layer
	port    int // output of it, -1 for none
	ports   int
	bytes   int
	bodies  int // how deep in bodies
	whole   bool
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func (p *irParser) start(t xml.StartElement) error {
	name := t.Name.Local
	if len(p.path) >= maxDepth {
		return errLarge
	}
	parent := ""
	if len(p.path) > 0 {
		parent = p.path[len(p.path)-1]
	}
	p.path = append(p.path, name)
	if name == "body" || name == "then_body" || name == "else_body" {
		p.bodies++
	}
	if p.bodies > 0 {
		return nil
	}
	switch {
	case name == "layer" && parent == "layers":
		return p.layer(t)
	case name == "data" && parent == "layer" && p.current >= 0:
		if s := attr(t, "originalLayersNames"); s != "" {
			p.g.layers[p.current].origins = strings.Split(s, ",")
			p.bytes += len(s)
		}
	case name == "port" && parent == "input" && p.current >= 0:
		p.ports++
		p.inputs[p.current] = append(p.inputs[p.current], number(attr(t, "id")))
	case name == "port" && parent == "output" && p.current >= 0:
		p.ports++
		l := &p.g.layers[p.current]
		names := attr(t, "names")
		p.bytes += len(names)
		l.outs = append(l.outs, outPort{id: number(attr(t, "id")), names: unescape(names)})
		p.port = len(l.outs) - 1
	case name == "edge" && parent == "edges":
		if len(p.edges) >= maxEdges {
			return errLarge
		}
		p.edges = append(p.edges, [4]int{number(attr(t, "from-layer")), number(attr(t, "from-port")), number(attr(t, "to-layer")), number(attr(t, "to-port"))})
	}
	if p.ports > maxPorts || p.bytes > maxNames {
		return errLarge
	}
	return nil
}

func (p *irParser) layer(t xml.StartElement) error {
	if len(p.g.layers) >= maxLayers {
		return errLarge
	}
	l := layer{name: attr(t, "name"), op: attr(t, "type")}
	l.constant = l.op == "Const" || l.op == "Constant"
	p.bytes += len(l.name) + len(l.op)
	p.current, p.port = len(p.g.layers), -1
	if id := number(attr(t, "id")); id >= 0 {
		p.ids[id] = p.current
	}
	if _, there := p.g.byName[l.name]; !there {
		p.g.byName[l.name] = p.current
	}
	p.g.layers, p.inputs = append(p.g.layers, l), append(p.inputs, nil)
	return nil
}

func (p *irParser) end() {
	if len(p.path) == 0 {
		return
	}
	name := p.path[len(p.path)-1]
	p.path = p.path[:len(p.path)-1]
	switch name {
	case "body", "then_body", "else_body":
		p.bodies--
	case "layer":
		if p.bodies == 0 {
			p.current, p.port = -1, -1
		}
	case "port":
		p.port = -1
	case "net":
		p.whole = p.whole || len(p.path) == 0
	}
}

func (p *irParser) text(t xml.CharData) {
	n := len(p.path)
	if p.bodies > 0 || p.current < 0 || p.port < 0 || n < 2 || p.path[n-1] != "dim" {
		return
	}
	d, err := strconv.ParseInt(strings.TrimSpace(string(t)), 10, 64)
	if err != nil {
		d = -1
	}
	o := &p.g.layers[p.current].outs[p.port]
	if len(o.dims) < maxRankRead {
		o.dims = append(o.dims, d)
	}
}

const maxRankRead = 64

// unescape splits the names of a tensor: they are separated by commas, and a backslash escapes a
// comma in a name.
func unescape(s string) (names []string) {
	if s == "" {
		return nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ',':
			b.WriteByte(',')
			i++
		case s[i] == ',':
			names = append(names, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(names, b.String())
}

// connect resolves edges to ends.
func (p *irParser) connect() {
	in := make([]map[int]int, len(p.g.layers)) // position of an input by its number
	for i, list := range p.inputs {
		in[i] = make(map[int]int, len(list))
		for k, id := range list {
			in[i][id] = k
		}
		p.g.layers[i].from = make([]end, len(list))
		for k := range list {
			p.g.layers[i].from[k] = end{-1, -1}
		}
	}
	for _, e := range p.edges {
		from, ok := p.ids[e[0]]
		to, also := p.ids[e[2]]
		if !ok || !also || from == to {
			continue
		}
		at, ok := in[to][e[3]]
		if !ok {
			continue
		}
		for k := range p.g.layers[from].outs {
			if p.g.layers[from].outs[k].id == e[1] {
				p.g.layers[to].from[at] = end{from, k}
				p.g.layers[from].to = append(p.g.layers[from].to, to)
			}
		}
	}
}
