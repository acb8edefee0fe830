package tflite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
)

// lmPart is a section to write.
type lmPart struct {
	kind uint8
	name string // of a model, "" for none
	data []byte
}

// container makes a .litertlm file whose sections begin after the given number of bytes.
func container(t testing.TB, begin int, parts ...lmPart) []byte {
	t.Helper()
	var objects []*flatbuffer.Object
	var body []byte
	for _, p := range parts {
		o := &flatbuffer.Object{}
		if p.name != "" {
			value, item := &flatbuffer.Object{}, &flatbuffer.Object{}
			value.String(0, p.name)
			item.String(0, "model_type")
			item.Uint8(1, 9, 0)
			item.Table(2, value)
			o.Tables(0, []*flatbuffer.Object{item})
		}
		o.Int64(1, int64(begin+len(body)), 0)
		body = append(body, p.data...)
		o.Int64(2, int64(begin+len(body)), 0)
		o.Uint8(3, p.kind, 0)
		objects = append(objects, o)
	}
	list, root := &flatbuffer.Object{}, &flatbuffer.Object{}
	list.Tables(0, objects)
	root.Table(1, list)
	header, err := flatbuffer.Build(root, "none") // no reader uses the identifier
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(lmMark)
	for _, v := range []uint32{1, 5, 0, 0} {
		_ = binary.Write(&b, binary.LittleEndian, v) // into memory
	}
	_ = binary.Write(&b, binary.LittleEndian, uint64(lmHeader+len(header)))
	b.Write(header)
	return append(append(b.Bytes(), make([]byte, max(0, begin-b.Len()))...), body...)
}

const lmBegin = 1 << 14 // of the first section in real files

func TestOpenContainer(t *testing.T) {
	t.Parallel()
	model := smallModel(t)
	tokens := lmPart{4, "", []byte("words")}
	prefill, embed := lmPart{lmModel, "tf_lite_prefill_decode", model}, lmPart{lmModel, "tf_lite_embedder", model}
	for _, c := range []struct {
		name, pick, want, note, errors string
		parts                          []lmPart
	}{
		{name: "one", want: "!tf_lite_embedder", note: "model tf_lite_embedder of a container with 2 sections: SentencePiece tokenizer (5 bytes), tf_lite_embedder (", parts: []lmPart{tokens, embed}},
		{name: "prefill and decode", want: "!tf_lite_prefill_decode", note: "Other models are named as a.litertlm!MODEL.", parts: []lmPart{embed, prefill, tokens}},
		{name: "named", pick: "!tf_lite_embedder", want: "!tf_lite_embedder", parts: []lmPart{prefill, embed}},
		{name: "without a name", want: "!model_0", parts: []lmPart{{lmModel, "", model}, {200, "", nil}}},
		{name: "several", errors: "2 models (model_0, model_1); name one as a.litertlm!MODEL", parts: []lmPart{{lmModel, "", model}, {lmModel, "", model}}},
		{name: "unknown name", pick: "!x", errors: `no model "x", only tf_lite_prefill_decode, tf_lite_embedder`, parts: []lmPart{prefill, embed}},
		{name: "no model", errors: "the container has no .tflite model", parts: []lmPart{tokens}},
		{name: "damaged model", errors: "a.litertlm!tf_lite_embedder: ", parts: []lmPart{{lmModel, "tf_lite_embedder", model[:40]}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, "a.litertlm", container(t, lmBegin, c.parts...))
			m, err := Open(path + c.pick)
			if c.errors != "" {
				if err == nil || !strings.Contains(err.Error(), c.errors) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want %q", err, c.errors)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.Close() }()
			if m.Path != path+c.want || len(m.Main().Nodes) == 0 || len(m.Notes) != 1 || !strings.Contains(m.Notes[0], c.note) || !bytes.Equal(m.Content, model) {
				t.Errorf("%s with %d nodes, notes %q; want %s, %q", m.Path, len(m.Main().Nodes), m.Notes, c.want, c.note)
			}
		})
	}
}

// TestContainerErrors: one line for each defect.
func TestContainerErrors(t *testing.T) {
	t.Parallel()
	whole := container(t, lmBegin, lmPart{lmModel, "", []byte("x")})
	changed := func(at int, v uint64, size int) []byte {
		b := bytes.Clone(whole)
		word := binary.LittleEndian.AppendUint64(nil, v)
		copy(b[at:], word[:size])
		return b
	}
	for want, data := range map[string][]byte{
		"ends within the header: 20 bytes": whole[:20],
		"version 2 of .litertlm":           changed(8, 2, 4),
		"the header ends at byte 5":        changed(24, 5, 8),
		"header ends at byte 1844":         changed(24, 1<<64-1, 8),
		"section 0 lies from byte 16384":   whole[:len(whole)-1],
		"section 0 lies from byte 10 to":   container(t, 10, lmPart{lmModel, "", []byte("x")}),
		"outside the":                      changed(lmHeader, 1<<30, 4),
	} {
		_, err := ParseArchive(data, "a.litertlm")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "a.litertlm: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", want, err)
		}
	}
	many := make([]lmPart, lmMaxSection+1)
	if _, err := ParseArchive(container(t, 1<<17, many...), "a.litertlm"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d sections", len(many))) {
		t.Errorf("too many sections: %v", err)
	}
}

func FuzzContainer(f *testing.F) {
	model := smallModel(f)
	f.Add(container(f, 1024, lmPart{4, "", []byte("words")}, lmPart{lmModel, "tf_lite_prefill_decode", model}))
	f.Add(container(f, 1024, lmPart{lmModel, "", model}, lmPart{7, "", nil}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := ParseArchive(data, "f.litertlm"); err == nil {
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
