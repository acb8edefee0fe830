package sparsify

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// Zoo is SparseZoo's analysis of a model: parameters and operations by whether zeros avoid them,
// singly ("single") and in blocks of four input channels ("block4").
type Zoo struct {
	NodeCounts       map[string]int `json:"node_counts" yaml:"node_counts"`
	AllNodes         ZooNodes       `json:"all_nodes" yaml:"all_nodes"`
	Parameterized    ZooNodes       `json:"parameterized" yaml:"parameterized"`
	NonParameterized ZooNodes       `json:"non_parameterized" yaml:"non_parameterized"`
	Parameters       ZooParams      `json:"parameter_summary" yaml:"parameter_summary"`
	Operations       ZooOps         `json:"operation_summary" yaml:"operation_summary"`
	ModelName        string         `json:"model_name" yaml:"model_name"`
	Nodes            []ZooNode      `json:"nodes" yaml:"nodes"`
}

// ZooNodes counts operators.
type ZooNodes struct {
	Total     int `json:"total" yaml:"total"`
	Quantized int `json:"quantized" yaml:"quantized"`
	Pruned    int `json:"pruned" yaml:"pruned"`
	Prunable  int `json:"prunable" yaml:"prunable"`
}

// ZooZeros counts parameters or blocks of them.
type ZooZeros struct {
	Zero     int64   `json:"zero" yaml:"zero"`
	NonZero  int64   `json:"non_zero" yaml:"non_zero"`
	Sparsity float64 `json:"sparsity" yaml:"sparsity"`
	Total    int64   `json:"total" yaml:"total"`
}

func (z ZooZeros) plus(w ZooZeros) ZooZeros {
	zero, non := z.Zero+w.Zero, z.NonZero+w.NonZero
	return ZooZeros{zero, non, float64(zero) / float64(max(1, zero+non)), zero + non}
}

func (z ZooZeros) all() int64 { return z.Total }

// ZooSkips counts executed operations and those avoided by zeros.
type ZooSkips struct {
	Dense    int64   `json:"dense" yaml:"dense"`
	Sparse   int64   `json:"sparse" yaml:"sparse"`
	Sparsity float64 `json:"sparsity" yaml:"sparsity"`
}

func (s ZooSkips) plus(w ZooSkips) ZooSkips {
	dense, sparse := s.Dense+w.Dense, s.Sparse+w.Sparse
	return ZooSkips{dense, sparse, float64(sparse) / float64(max(1, dense+sparse))}
}

func (s ZooSkips) all() int64 { return s.Dense + s.Sparse }

// ZooSum sums parameters or operations up, by structure of zeros and by element type.
type ZooSum[T zooCounts[T]] struct {
	Total          int64        `json:"total" yaml:"total"`
	Pruned         int64        `json:"pruned" yaml:"pruned"`
	BlockStructure map[string]T `json:"block_structure" yaml:"block_structure"`
	Precision      map[string]T `json:"precision" yaml:"precision"`
}

// ZooParams sums parameters up.
type ZooParams = ZooSum[ZooZeros]

// ZooCount sums operations of a kind up.
type ZooCount = ZooSum[ZooSkips]

// zooCounts are counts that can be added, and their total.
type zooCounts[T any] interface {
	plus(other T) T
	all() int64
}

// ZooOps are operations and multiply-accumulates.
type ZooOps struct {
	Ops  ZooCount `json:"ops" yaml:"ops"`
	MACs ZooCount `json:"macs" yaml:"macs"`
}

// ZooValue is an operand; an unknown shape or dimension is nil.
type ZooValue struct {
	Name  string `json:"name" yaml:"name"`
	Shape Dims   `json:"shape" yaml:"shape"`
	Type  string `json:"dtype" yaml:"dtype"`
}

// ZooParameter is a constant of an operator: "weight" or "bias".
type ZooParameter struct {
	Alias   string    `json:"alias" yaml:"alias"`
	Name    string    `json:"name" yaml:"name"`
	Shape   []int64   `json:"shape" yaml:"shape"`
	Summary ZooParams `json:"parameter_summary" yaml:"parameter_summary"`
	Type    string    `json:"dtype" yaml:"dtype"`
}

// ZooNode is one operator.
type ZooNode struct {
	Name       string         `json:"name" yaml:"name"`
	NodeID     string         `json:"node_id" yaml:"node_id"`
	OpType     string         `json:"op_type" yaml:"op_type"`
	Inputs     []ZooValue     `json:"inputs" yaml:"inputs"`
	Outputs    []ZooValue     `json:"outputs" yaml:"outputs"`
	Summary    ZooParams      `json:"parameter_summary" yaml:"parameter_summary"`
	Operations ZooOps         `json:"operation_summary" yaml:"operation_summary"`
	Parameters []ZooParameter `json:"parameters" yaml:"parameters"`
	Prunable   bool           `json:"parameterized_prunable" yaml:"parameterized_prunable"`
	Sparse     bool           `json:"sparse_node" yaml:"sparse_node"`
	Quantized  bool           `json:"quantized_node" yaml:"quantized_node"`
	// ZeroPoint is a number, or a list of one for each channel.
	ZeroPoint any `json:"zero_point" yaml:"zero_point"`
}

// YAML writes the analysis as SparseZoo does.
func (z *Zoo) YAML() ([]byte, error) { return yaml.Marshal(z) }

// JSON writes it with the same names.
func (z *Zoo) JSON() ([]byte, error) { return jsonx.MarshalIndent(z) }

// ParseZoo reads an analysis of SparseZoo, YAML or JSON. Errors are [FileError].
func ParseZoo(data []byte, file string) (*Zoo, error) {
	const most = 64 << 20 // analyses of models of thousands of operators
	d, top, err := parse(data, file, most)
	if err != nil {
		return nil, err
	}
	z := &Zoo{}
	if top.Kind != yaml.MappingNode {
		return nil, d.bad(top, "an analysis of SparseZoo was expected: a mapping, not %s", kind(top))
	}
	if err := top.Decode(z); err != nil {
		return nil, &FileError{File: file, Text: fmt.Sprintf("an analysis of SparseZoo was expected: %v", err)}
	}
	if z.Nodes == nil && z.NodeCounts == nil {
		return nil, d.bad(top, "an analysis of SparseZoo was expected: it has neither nodes nor node_counts")
	}
	for i, n := range z.Nodes {
		if s := n.Summary; cmp.Or(n.NodeID, n.Name) == "" || s.Total < 0 || s.Pruned < 0 || s.Pruned > s.Total {
			return nil, &FileError{File: file, Text: fmt.Sprintf("nodes[%d]: an operator with a name and sound counts was expected", i)}
		}
	}
	return z, nil
}
