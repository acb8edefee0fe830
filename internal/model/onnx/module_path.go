package onnx

import (
	"strings"
)

// Metadata of a node with the modules that it comes from, as PyTorch's exporter writes it.
const (
	// scopesKey has a list in Python's notation, from the model to the node itself:
	// ['', 'layers.0', 'layers.0.attention', 'linear_3'].
	scopesKey = "pkg.torch.onnx.name_scopes"
	// namespaceKey has names and classes: ": Model/layers.0: Layer/linear_3: aten.linear".
	namespaceKey = "namespace"
)

// maxModulePath bounds the metadata of a node that are read, in bytes.
const maxModulePath = 1 << 12

// modulePath returns the path of the innermost module, "" for other metadata.
func (d *decoder) modulePath(e rawEntry) string {
	if len(e.value) > maxModulePath {
		return ""
	}
	var modules []string
	switch e.key {
	case scopesKey:
		modules = pythonList(string(e.value))
	case namespaceKey:
		for part := range strings.SplitSeq(string(e.value), "/") {
			name, _, named := strings.Cut(part, ": ")
			if !named {
				return "" // not in this notation
			}
			modules = append(modules, name)
		}
	}
	if len(modules) < 2 {
		return ""
	}
	path := slashed(modules[len(modules)-2])
	if s, ok := d.intern[path]; ok {
		return s
	}
	d.intern[path] = path
	return path
}

// pythonList reads a list of strings in Python's notation, nil if it is none.
func pythonList(s string) (out []string) {
	s, begins := strings.CutPrefix(strings.TrimSpace(s), "[")
	s, ends := strings.CutSuffix(s, "]")
	if !begins || !ends {
		return nil
	}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		quote := s[:1]
		if quote != "'" && quote != `"` {
			return nil
		}
		item, rest, closed := strings.Cut(s[1:], quote)
		if !closed || strings.Contains(item, `\`) {
			return nil // module names need no escapes
		}
		out = append(out, item)
		rest = strings.TrimSpace(rest)
		if s = strings.TrimPrefix(rest, ","); s == rest && rest != "" {
			return nil
		}
	}
	return out
}

// slashed separates the parts of a module's name by slashes. A number stays with the list that it
// belongs to: "layers.0.attention" becomes "layers.0/attention".
func slashed(name string) string {
	var b strings.Builder
	for i, part := range strings.Split(name, ".") {
		switch {
		case i == 0:
		case part != "" && strings.Trim(part, "0123456789") == "":
			b.WriteByte('.')
		default:
			b.WriteByte('/')
		}
		b.WriteString(part)
	}
	return b.String()
}
