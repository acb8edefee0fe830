package tensorrt

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// maxNodes limits the nodes of one fused layer.
const maxNodes = 5000

// nodes returns the names of the model's nodes in the name of a fused layer, and names of weights
// among them. Layers that the builder added have none.
func nodes(name string) (out []string) {
	name = otherProfile.ReplaceAllString(name, "")
	if !ownLayer.MatchString(name) && !ownCopy.MatchString(name) {
		split(name, 0, &out)
	}
	return out
}

var (
	ownLayer = lazyregexp.New(`^(Reformatting CopyNode for |reshape_before_|reshape_after_|copied_squeeze_after_|squeeze_after_|unsqueeze_)`)
	ownCopy  = lazyregexp.New(` (input|output) reformatter \d+$`)
	unnamed  = lazyregexp.New(`^\(Unnamed Layer\*? \d+\) \[\w+\]$`)
	copied   = lazyregexp.New(`^(.*?)(?:_clone_\d+| copy)$`)
)

// split splits a name at " + " and " || " outside of brackets, and groups in it.
func split(s string, depth int, out *[]string) {
	s = strings.TrimSpace(s)
	if s == "" || depth > 20 || len(*out) >= maxNodes {
		return
	}
	if inner, ok := wrapped(s, "{", "}"); ok {
		split(inner, depth+1, out)
		return
	}
	if inner, ok := wrapped(s, "PWN(", ")"); ok {
		for _, p := range outside(inner, ", ") {
			split(p, depth+1, out)
		}
		return
	}
	if inner, ok := wrapped(s, "ForeignNode[", "]"); ok {
		// Only the ends of the region are named.
		if a, b, ok := strings.Cut(inner, "..."); ok {
			split(a, depth+1, out)
			split(b, depth+1, out)
			return
		}
	}
	for _, sep := range []string{" || ", " + "} {
		if ps := outside(s, sep); len(ps) > 1 {
			for _, p := range ps {
				split(p, depth+1, out)
			}
			return
		}
	}
	if depth > 0 && strings.Contains(s, ",") && !strings.ContainsAny(s, "([") {
		// DLA regions list their nodes.
		for _, p := range strings.Split(s, ",") {
			if p = strings.TrimSpace(p); p != "" && len(*out) < maxNodes {
				*out = append(*out, p)
			}
		}
		return
	}
	if unnamed.MatchString(s) {
		return
	}
	if m := copied.FindStringSubmatch(s); m != nil && m[1] != "" {
		s = m[1]
	}
	*out = append(*out, s)
}

// wrapped returns the text between begin and end if they enclose all of s.
func wrapped(s, begin, end string) (string, bool) {
	if !strings.HasPrefix(s, begin) || !strings.HasSuffix(s, end) {
		return "", false
	}
	inner := s[len(begin) : len(s)-len(end)]
	open, closed := begin[len(begin)-1], end[0]
	level := 0
	for i := range len(inner) {
		switch inner[i] {
		case open:
			level++
		case closed:
			if level--; level < 0 {
				return "", false
			}
		}
	}
	return inner, level == 0
}

// outside splits a text at separators outside of brackets.
func outside(s, sep string) []string {
	var out []string
	level, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			level++
		case ')', ']', '}':
			level = max(0, level-1)
		default:
			if level == 0 && strings.HasPrefix(s[i:], sep) {
				out = append(out, s[from:i])
				i += len(sep) - 1
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}

// onnxNodes returns the nodes in a layer's metadata: "[ONNX Layer: a]" joined by a separator
// of records.
func onnxNodes(s string) (out []string) {
	const begin = "[ONNX Layer: "
	for _, p := range strings.Split(s, "\x1e") {
		for len(out) < maxNodes {
			i := strings.Index(p, begin)
			if i < 0 {
				break
			}
			p = p[i+len(begin):]
			end := strings.Index(p, "]"+begin) // several without the separator
			if end < 0 {
				end = strings.LastIndexByte(p, ']')
			}
			if end < 0 {
				break
			}
			out = append(out, p[:end])
			p = p[end+1:]
		}
	}
	return out
}

var typeName = lazyregexp.New(`^([A-Z][A-Za-z0-9]*?)_*\d*$`)

// operator derives the operator of a layer from its name, for profiles without a description of
// their layers: the kinds that exporters put into the names of nodes, such as "Conv+Relu". It is ""
// if the name has none.
func operator(name string) string {
	if strings.HasPrefix(name, "Reformatting CopyNode") || ownCopy.MatchString(name) {
		return "Reformat"
	}
	var kinds []string
	for _, n := range nodes(name) {
		n = n[strings.LastIndexByte(n, '/')+1:]
		if m := typeName.FindStringSubmatch(n); m != nil && len(kinds) < 20 {
			kinds = append(kinds, m[1])
		}
	}
	return strings.Join(kinds, "+")
}
