package tflite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
)

// A .litertlm file of LiteRT-LM begins with a mark, three numbers of its version and the end of its
// header. The header is a FlatBuffer that lists the sections: models, tokenizers and others.
//
// Source of the format: schema/core of LiteRT-LM.
const (
	lmMark       = "LITERTLM"
	lmHeader     = 32 // offset of the FlatBuffer
	lmVersion    = 1  // the major version
	lmMaxHeader  = 1 << 20
	lmMaxSection = 1024
	lmMaxName    = 200
)

// HasLMMark reports whether a file begins like a .litertlm container.
func HasLMMark(head []byte) bool { return bytes.HasPrefix(head, []byte(lmMark)) }

// lmKinds are the types of sections by their number.
var lmKinds = []string{"none", "binary data", "deprecated", "model", "SentencePiece tokenizer", "model metadata", "tokenizer", "weights", "executor metadata"}

// lmModel is the number of sections with a model.
const lmModel = 3

// section is a part of a container.
type section struct {
	kind int
	name string // of a model, such as "tf_lite_prefill_decode"; the kind of others
	data []byte
}

// sections reads the list of a container.
func sections(data []byte) ([]section, error) {
	if len(data) < lmHeader {
		return nil, fmt.Errorf("the file ends within the header: %d bytes, expected %d at least", len(data), lmHeader)
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != lmVersion {
		return nil, fmt.Errorf("byte 8: version %d of .litertlm, expected %d", v, lmVersion)
	}
	end := binary.LittleEndian.Uint64(data[24:])
	if end < lmHeader || end > uint64(len(data)) || end > lmMaxHeader {
		return nil, fmt.Errorf("byte 24: the header ends at byte %d, expected one from %d to %d: download the file again", end, lmHeader, min(len(data), lmMaxHeader))
	}
	r := flatbuffer.NewReader(data[lmHeader:end])
	list := r.Root("header", "").Table(1, "section_metadata").Tables(0, "objects")
	if n := list.Len(); n > lmMaxSection {
		return nil, fmt.Errorf("%d sections, expected %d at most", n, lmMaxSection)
	}
	var out []section
	for i := range list.Len() {
		t := list.At(i)
		from, to := t.Uint64(1, "begin_offset", 0), t.Uint64(2, "end_offset", 0)
		kind := int(t.Uint8(3, "data_type", 0))
		if r.Err() == nil && (from < end || from > to || to > uint64(len(data))) {
			return nil, fmt.Errorf("section %d lies from byte %d to %d, expected bytes %d to %d: download the file again", i, from, to, end, len(data))
		}
		name := fmt.Sprintf("type %d", kind)
		if kind < len(lmKinds) {
			name = lmKinds[kind]
		}
		if s := sectionName(t); s != "" {
			name = s
		} else if kind == lmModel {
			name = fmt.Sprintf("model_%d", i)
		}
		if r.Err() != nil {
			break
		}
		out = append(out, section{kind, name, data[from:to:to]})
	}
	return out, r.Err()
}

// sectionName returns the type of the model in a section, "" without one.
func sectionName(t flatbuffer.Table) string {
	const text = 9 // the kind of a string in the union of values
	items := t.Tables(0, "items")
	for i := range items.Len() {
		kv := items.At(i)
		if kv.String(0, "key") != "model_type" || kv.Uint8(1, "value_type", 0) != text {
			continue
		}
		if s := kv.Table(2, "value").String(0, "value"); len(s) <= lmMaxName {
			return s
		}
	}
	return ""
}

// unpackLM returns a model of a container: the one with a name, without a name that for prefill
// and decode, or the only one. note lists the sections.
func unpackLM(data []byte, file, member string) (model []byte, name, note string, err error) {
	list, err := sections(data)
	if err != nil {
		return nil, "", "", err
	}
	var models, all []string
	found := -1
	for i, s := range list {
		all = append(all, fmt.Sprintf("%s (%d bytes)", s.name, len(s.data)))
		if s.kind != lmModel {
			continue
		}
		models = append(models, s.name)
		if found < 0 && (s.name == member || member == "" && strings.Contains(strings.ToLower(s.name), "prefill_decode")) {
			found = i
		}
	}
	if found < 0 && member == "" && len(models) == 1 {
		found = slices.IndexFunc(list, func(s section) bool { return s.kind == lmModel })
	}
	const named = 8
	switch {
	case len(models) == 0:
		return nil, "", "", errors.New("the container has no .tflite model")
	case found < 0 && member != "":
		return nil, "", "", fmt.Errorf("the container has no model %q, only %s", member, strings.Join(models[:min(len(models), named)], ", "))
	case found < 0:
		return nil, "", "", fmt.Errorf("the container has %d models (%s); name one as %s!MODEL", len(models), strings.Join(models[:min(len(models), named)], ", "), file)
	}
	note = fmt.Sprintf("This is model %s of a container with %d sections: %s.", list[found].name, len(all), strings.Join(all[:min(len(all), 2*named)], ", "))
	if len(models) > 1 {
		note += fmt.Sprintf(" Other models are named as %s!MODEL.", file)
	}
	return list[found].data, list[found].name, note, nil
}
