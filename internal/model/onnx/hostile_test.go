package onnx

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/base/mapped"
)

// TestHostileMemory feeds files of about a megabyte that are as dense as the
// format allows in what the reader must keep.
func TestHostileMemory(t *testing.T) {
	const size = 1 << 20
	repeat := func(part func(*message)) func(*message) {
		return func(b *message) {
			one := msg(part)
			*b = append(*b, strings.Repeat(string(one), size/len(one))...)
		}
	}
	long := strings.Repeat("n", 4000)
	bodies := func(depth int, inner ...func(*message)) []func(*message) {
		for range depth {
			inner = []func(*message){node("If y = cond", attr("b", kindGraph, sub(attrG, append(inner, output("y"))...)))}
		}
		return inner
	}
	var captured []func(*message)
	for i := range 50_000 {
		captured = append(captured, input(fmt.Sprintf("%x", i)))
	}
	reader := func(b *message) {
		var n message
		n.str(nodeInput, "cond")
		for i := range 50_000 {
			n.str(nodeInput, fmt.Sprintf("%x", i))
		}
		n.str(nodeOpType, "F")
		b.bytes(graphNode, n)
	}
	calls := func(b *message) {
		for i := range 20_000 {
			node(fmt.Sprintf("local:F o%x = x", i))(b)
		}
	}
	tests := []struct {
		name string
		data []byte
	}{
		{"nodes", model(repeat(sub(graphNode, str(nodeOpType, "a"), str(nodeOutput, ""))))},
		{"absent inputs", model(sub(graphNode, str(nodeOpType, "a"), str(nodeOutput, ""), repeat(str(nodeInput, ""))))},
		{"attributes", model(sub(graphNode, str(nodeOpType, "a"), str(nodeOutput, ""), repeat(attr("a", kindInt))))},
		{"integers", model(node("a _ =", attr("a", kindInts, sub(attrInts, func(b *message) { *b = make(message, size) }))))},
		{"strings", model(node("a _ =", attr("a", kindStrings, repeat(str(attrStrings, "")))))},
		{"tensors", model(node("a _ =", attr("a", kindTensors, repeat(sub(attrTensors, num(tensorDataType, 1), num(tensorDims, 0))))))},
		{"initializers", model(repeat(sub(graphInitializer, num(tensorDataType, 1), num(tensorDims, 0), str(tensorName, "w"))))},
		{"bodies", model(node("a _ =", attr("a", kindGraphs, repeat(sub(attrGraphs, sub(graphOutput))))))},
		{"dimensions", model(sub(graphInitializer, num(tensorDataType, 1), repeat(num(tensorDims, 1))))},
		{"metadata", msg(repeat(sub(modelMetadata)), sub(modelGraph))},
		{"functions", msg(repeat(sub(modelFunctions, str(functionName, "f"))), sub(modelGraph))},
		{"captures", model(append(captured, append([]func(*message){input("cond")}, bodies(20, reader)...)...)...)},
		{"long names inlined", modelWith([]func(*message){function("F", "a", "o", nodeIn(functionNode, "Relu "+long+" = a"), nodeIn(functionNode, "Relu o = a"))}, input("x"), calls)},
		{"external entries", model(sub(graphInitializer, num(tensorDataType, 1), num(tensorDataLocation, 1), repeat(sub(tensorExternalData))))},
		{"packed varints", model(sub(graphInitializer, num(tensorDims, size), num(tensorDataType, 7), func(b *message) {
			*b = protowire.AppendTag(*b, tensorInt64Data, protowire.BytesType)
			*b = protowire.AppendBytes(*b, make([]byte, size))
		}))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			m, err := Parse(tt.data, "", "")
			runtime.ReadMemStats(&after)
			total := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(tt.data))
			t.Logf("%.2f MB: %.0f bytes allocated a byte; error %.80v", float64(len(tt.data))/1e6, total, err)
			if total > 256 {
				t.Errorf("allocated %.0f bytes a byte of input", total)
			}
			runtime.KeepAlive(m)
		})
	}
}

// TestShrunkFile cuts a file short while it is mapped: reading beyond the end
// faults, and must be an error.
func TestShrunkFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut short on Windows")
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	big := make([]byte, 64<<10)
	if err := os.WriteFile(path, model(input("x"), sub(graphInitializer, num(tensorDims, int64(len(big))), num(tensorDataType, 2), str(tensorName, "w"), raw(tensorRawData, big...)), node("Add y = x w")), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(f.Data, path, ""); err == nil || !strings.Contains(err.Error(), "changed while it was in use") {
		t.Errorf("got error %v", err)
	}
}
