package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// ownKeys is what the keys of properties begin with that opmeter writes into a model.
const ownKeys = "opmeter."

// writeAnnotated writes the model of the profile with the figures of its nodes as their metadata.
// The file of the model must be where it was, with the same bytes.
func writeAnnotated(w io.Writer, p *profile.Profile, o Options) error {
	if p.Model.Format != "onnx" {
		return fmt.Errorf("only .onnx models can be written with the figures of their nodes: %s is a %s model", text.Clean(p.Model.Name), unset(p.Model.Format))
	}
	path := p.Model.Path
	if path == "" || p.Model.SHA256 == "" {
		return fmt.Errorf("the profile does not name the file of its model: profile the .onnx file again")
	}
	f, err := mapped.Open(path)
	if err != nil {
		return fmt.Errorf("the model of the profile: %w: run opmeter in the folder of the profile command", err)
	}
	defer func() { _ = f.Close() }()
	return mapped.Guard(func() error {
		if sum := sha256.Sum256(f.Data); hex.EncodeToString(sum[:]) != p.Model.SHA256 {
			return fmt.Errorf("%s is not the file that was profiled: it has other bytes; profile it again", path)
		}
		if err := beside(path, o.file); err != nil {
			return err
		}
		notes := newNodeNotes(p)
		found := 0
		about := properties([][2]string{{"latency", latency(p)}, {"target", target(p)}, {"version", buildinfo.Version()}})
		err := onnx.Annotate(w, f.Data, ownKeys, about, func(at int, name, op string) []onnx.Property {
			n := notes.take(at, name, op)
			if n == nil {
				return nil
			}
			found++
			return n.properties()
		})
		if err == nil && found == 0 {
			return fmt.Errorf("no layer of the profile leads back to a node of %s", path)
		}
		return err
	})
}

func unset(format string) string {
	if format == "" {
		return "foreign"
	}
	return text.Clean(format)
}

// beside refuses a file that would replace the model, and one in another folder than the external
// data of the model.
func beside(model, file string) error {
	if file == "" {
		return nil
	}
	if a, err := os.Stat(model); err == nil {
		if b, err := os.Stat(file); err == nil && os.SameFile(a, b) {
			return fmt.Errorf("it is the model itself: name another file")
		}
	}
	m, err := onnx.OpenShapes(model)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	if m.Beside == nil && m.Absent == nil {
		return nil
	}
	from, err := os.Stat(filepath.Dir(model))
	if err != nil {
		return err
	}
	if to, err := os.Stat(filepath.Dir(file)); err != nil || !os.SameFile(from, to) {
		return fmt.Errorf("the external data of %s lie in its folder: write the file there", model)
	}
	return nil
}

// nodeNote is what a profile knows of a node.
type nodeNote struct {
	source        profile.SourceNode
	layer         *profile.Layer // the first that does the node's work
	seconds       float64        // of all its layers
	share         float64
	timed, shared bool
	fused         *int64 // the layer that does its work beside that of its own node
	taken         bool   // a node of the file has it
}

// nodeNotes finds the notes of the nodes of the main graph.
type nodeNotes struct {
	at     map[int64]*nodeNote
	called map[[2]string][]*nodeNote // by name and operator
}

func newNodeNotes(p *profile.Profile) *nodeNotes {
	s := &nodeNotes{at: map[int64]*nodeNote{}, called: map[[2]string][]*nodeNote{}}
	get := func(n profile.SourceNode) *nodeNote {
		if s.at[n.Node] == nil {
			s.at[n.Node] = &nodeNote{source: n}
			s.called[[2]string{n.Name, n.Op}] = append(s.called[[2]string{n.Name, n.Op}], s.at[n.Node])
		}
		return s.at[n.Node]
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Provenance == nil || l.Provenance.Inserted {
			continue
		}
		for k, source := range l.Provenance.SourceNodes {
			if source.Graph != 0 {
				continue
			}
			n := get(source)
			if k > 0 {
				if n.layer == nil {
					n.fused = &l.Index
				}
				continue
			}
			if n.layer == nil {
				n.layer, n.fused = l, nil
			}
			if v, ok := l.Latency.Best(); ok {
				n.seconds += v
				n.timed = true
			}
			if l.Share != nil {
				n.share += *l.Share
				n.shared = true
			}
		}
	}
	return s
}

// take returns the note of a node of the file, nil for none. Positions hold for files whose nodes
// are in an order in which they can run. In others, and beside nodes of functions, names do.
func (s *nodeNotes) take(at int, name, op string) *nodeNote {
	n := s.at[int64(at)]
	if n == nil || n.source.Name != name || n.source.Op != op {
		same := s.called[[2]string{name, op}]
		if name == "" || len(same) != 1 {
			return nil
		}
		n = same[0]
	}
	if n.taken {
		return nil
	}
	n.taken = true
	return n
}

func (n *nodeNote) properties() []onnx.Property {
	var time, share, bound, macs, layer, state string
	if n.timed {
		time = Duration(n.seconds)
	}
	if n.shared {
		share = Percent(n.share)
	}
	if n.fused != nil {
		state = "fused into " + strconv.FormatInt(*n.fused, 10)
	}
	if l := n.layer; l != nil {
		layer, state = strconv.FormatInt(l.Index, 10), words.State(l)
		if l.MACs != nil {
			macs = Count(*l.MACs)
		}
		if l.Roof != nil {
			bound = string(l.Roof.Bound)
		}
	}
	return properties([][2]string{{"layer", layer}, {"time", time}, {"share", share}, {"bound", bound}, {"macs", macs}, {"state", state}})
}

// properties are the pairs that have a value.
func properties(pairs [][2]string) (ps []onnx.Property) {
	for _, x := range pairs {
		if x[1] != "" {
			ps = append(ps, onnx.Property{Key: ownKeys + x[0], Value: text.Clean(x[1])})
		}
	}
	return ps
}
