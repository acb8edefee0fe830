package onnx_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// modelFiles lists every ONNX file of the reference material.
func modelFiles(t testing.TB) []string {
	var out []string
	err := filepath.WalkDir(material.Path(t, "models"), func(p string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(p, ".onnx") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpenMaterial(t *testing.T) {
	t.Parallel()
	files := modelFiles(t)
	for _, p := range files {
		t.Run(filepath.Base(p), func(t *testing.T) {
			t.Parallel()
			m, err := onnx.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			nodes := 0
			for _, g := range m.Graphs {
				nodes += len(g.Nodes)
			}
			t.Logf("IR %d, opsets %v, %d graphs, %d nodes, %d values in the main graph, warnings %q",
				m.IRVersion, m.Opsets, len(m.Graphs), nodes, len(m.Main().Values), m.Warnings)
			if nodes == 0 || len(m.Main().Inputs) == 0 || len(m.Main().Outputs) == 0 {
				t.Errorf("%d nodes, %d inputs, %d outputs", nodes, len(m.Main().Inputs), len(m.Main().Outputs))
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d files", len(files))
}
