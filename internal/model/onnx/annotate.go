package onnx

import (
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Property is an entry of the metadata of a model or of a node.
type Property struct{ Key, Value string }

// Annotate copies an ONNX file and adds properties to the metadata of the model and of the nodes
// of its main graph. node gets the position, name and operator of a node. Properties that the file
// has already are left out if their keys start with prefix. All other bytes stay as they are.
func Annotate(w io.Writer, data []byte, prefix string, model []Property, node func(at int, name, op string) []Property) error {
	a := annotator{prefix: prefix, node: node}
	out, err := a.rewrite(data, 0, modelMetadata, model, modelGraph, func(b []byte, off int64) (pieces, error) {
		at := 0
		return a.rewrite(b, off, 0, nil, graphNode, func(b []byte, off int64) (pieces, error) {
			name, op, err := labels(b, off)
			if err != nil {
				return pieces{}, err
			}
			props := a.node(at, name, op)
			at++
			return a.rewrite(b, off, nodeMetadata, props, 0, nil)
		})
	})
	if err != nil {
		return err
	}
	if out.size > math.MaxInt32 {
		return errorf(-1, "the file with annotations would have %d bytes, at most %d are possible", out.size, math.MaxInt32)
	}
	for _, b := range out.parts {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// pieces is a message as slices of the file and new bytes between them.
type pieces struct {
	parts [][]byte
	size  int64
}

func (p *pieces) add(b []byte) {
	p.parts = append(p.parts, b)
	p.size += int64(len(b))
}

// message adds a field with a message.
func (p *pieces) message(field protowire.Number, body pieces) {
	p.add(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(body.size)))
	p.parts = append(p.parts, body.parts...)
	p.size += body.size
}

type annotator struct {
	prefix string
	node   func(at int, name, op string) []Property
}

// rewrite copies a message at an offset of the file. It replaces what the fields named inner hold,
// and adds properties to the field named metadata. 0 names no field.
func (a *annotator) rewrite(b []byte, off int64, metadata protowire.Number, props []Property, inner protowire.Number, replace func([]byte, int64) (pieces, error)) (out pieces, err error) {
	at, kept := 0, 0 // kept is where the bytes start that are not copied yet
	keep := func() {
		if at > kept {
			out.add(b[kept:at])
		}
	}
	for at < len(b) {
		num, typ, tag := protowire.ConsumeTag(b[at:])
		n := tag
		if n >= 0 {
			n = protowire.ConsumeFieldValue(num, typ, b[at+tag:])
		}
		if n < 0 {
			return out, errorf(off+int64(at), "file is truncated, damaged or not an ONNX model: %v", protowire.ParseError(n))
		}
		n += tag
		if typ == protowire.BytesType && (num == inner || num == metadata) {
			v, _ := protowire.ConsumeBytes(b[at+tag:])
			switch {
			case num == inner:
				keep()
				body, err := replace(v, off+int64(at+n-len(v)))
				if err != nil {
					return out, err
				}
				out.message(num, body)
				kept = at + n
			case strings.HasPrefix(entryName(v), a.prefix):
				keep()
				kept = at + n
			}
		}
		at += n
	}
	keep()
	for _, p := range props {
		var e message
		e.str(entryKey, p.Key)
		e.str(entryValue, p.Value)
		var b message
		b.bytes(metadata, e)
		out.add(b)
	}
	return out, nil
}

// entryName is the key of an entry, "" for a damaged one.
func entryName(b []byte) string { return string(textField(b, entryKey)) }

// textField is the last text in a field of a message, nil for none.
func textField(b []byte, field protowire.Number) (text []byte) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return text
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return text
		}
		if num == field && typ == protowire.BytesType {
			text, _ = protowire.ConsumeBytes(b[n:])
		}
		b = b[n+m:]
	}
	return text
}

func labels(b []byte, off int64) (name, op string, err error) {
	name, op = string(textField(b, nodeName)), string(textField(b, nodeOpType))
	if op == "" {
		return "", "", errorf(off, "node has no operator type")
	}
	return name, op, nil
}
