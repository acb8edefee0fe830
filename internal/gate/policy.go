package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/editdistance"
	"github.com/opmeter/opmeter/internal/base/units"
)

// Directions of a rule.
const (
	Lower  = "lower"  // less is better
	Higher = "higher" // more is better
	Same   = "same"   // any change is for the worse
)

// Host is the target that is this computer, EmulatePrefix the beginning of a target that is an
// emulated board.
const (
	Host          = "host"
	EmulatePrefix = "emulate:"
)

// Latency is the figure that is measured on the host.
const Latency = "latency_s"

// Limits of a policy.
const (
	maxPolicy = 1 << 20 // bytes
	maxList   = 1000    // entries of a list
	maxErrors = 20
)

// Rule says how much worse a figure may become.
type Rule struct {
	Figure string
	// Model and Target are patterns as of [path.Match]; "" is every one.
	Model, Target string
	Better        string
	// Margin is a fraction of the base, Floor an amount in the unit of the figure. The larger
	// allowance holds.
	Margin, Floor float64
	// Required figures decide; others are reported only.
	Required bool
	// measured says that the figure is a time on this computer.
	measured bool
}

// Measured reports whether the figure has to be measured on this computer.
func (r *Rule) Measured() bool { return r.measured }

// Asked reports whether the rule itself asks to measure: its target is this computer. A rule for
// all targets does not.
func (r *Rule) Asked() bool {
	return r.Figure == Latency && r.Target != "" && Matches(r.Target, Host)
}

// Entry is a model of the matrix with its targets.
type Entry struct {
	Model   string
	Targets []string
	// Shapes are NAME=DIMS as of --shape.
	Shapes []string
	// At is the place of the entry in the policy, such as "gate.yaml:3: models[0]".
	At string
}

// Policy is the rules of a gate.
type Policy struct {
	// File is the file, "built-in" for the default; SHA256 is the hash of its content.
	File, SHA256 string
	Models       []Entry
	Rules        []Rule
	// Budget is the time for all measurements, Processes the least number of processes of each
	// version; zero for the defaults of package ab.
	Budget    time.Duration
	Processes int
}

// DefaultText is the policy without a file, as a file.
const DefaultText = `# Policy of opmeter gate: how much worse a figure may become. docs/ci.md has all keys.
# The larger one of margin (of the base) and floor (in the unit of the figure) is allowed.
# A later rule replaces earlier ones of the same figure for its models and targets.
figures:
  - {figure: macs, margin: 0%}
  - {figure: weights_bytes, margin: 0%}
  - {figure: file_bytes, margin: 0.1%, floor: 1KiB}   # names and metadata
  - {figure: peak_bytes, margin: 0%}
  - {figure: arena_bytes, margin: 0%}
  - {figure: tflm_arena_bytes, margin: 0%}
  - {figure: unsupported_layers, floor: 0}
  - {figure: uncounted_layers, floor: 0}
  - {figure: ram_bytes, margin: 0%}
  - {figure: flash_bytes, margin: 0.1%, floor: 1KiB}
  - {figure: instructions, margin: 0.1%, floor: 100}
  # Estimated for chips. On this computer gate --measure measures it, and a rule with target: host does.
  - {figure: latency_s, margin: 5%, floor: 500ns}
  - {figure: params, margin: 0%, required: false}
  - {figure: bytes_read, margin: 0%, required: false}
  - {figure: bytes_written, margin: 0%, required: false}
  - {figure: layers, margin: 0%, required: false}
  - {figure: output_error, floor: 0, required: false}
`

// BuiltIn is the name of the policy without a file.
const BuiltIn = "built-in"

// Default is the policy without a file.
func Default() *Policy {
	p, err := ParsePolicy([]byte(DefaultText), BuiltIn)
	if err != nil {
		panic(err) // a constant of this package
	}
	return p
}

// PolicyError is an error in a policy.
type PolicyError struct {
	File string
	Line int    // from 1, 0 for the whole file
	Key  string // such as "figures[2].margin"
	Text string
}

func (e *PolicyError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		s += ": " + e.Key
	}
	return s + ": " + e.Text
}

// ParsePolicy reads a policy in YAML or JSON. Errors are [PolicyError]s, joined.
func ParsePolicy(data []byte, file string) (*Policy, error) {
	if len(data) > maxPolicy {
		return nil, &PolicyError{File: file, Text: fmt.Sprintf("is %d bytes long; a policy has at most %d", len(data), maxPolicy)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, &PolicyError{File: file, Text: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 {
		return nil, &PolicyError{File: file, Text: "is empty; expected figures, such as those that opmeter gate --init writes"}
	}
	sum := sha256.Sum256(data)
	p := &Policy{File: file, SHA256: hex.EncodeToString(sum[:])}
	d := &decoder{file: file}
	d.object(doc.Content[0], "", []field{
		{"models", func(n *yaml.Node, key string) {
			d.list(n, key, func(n *yaml.Node, key string) { p.Models = append(p.Models, d.entry(n, key)) })
		}},
		{"figures", func(n *yaml.Node, key string) {
			d.list(n, key, func(n *yaml.Node, key string) { p.Rules = append(p.Rules, d.rule(n, key)) })
		}},
		{"measure", func(n *yaml.Node, key string) { d.measure(n, key, p) }},
	})
	if len(d.errs) == 0 && len(p.Rules) == 0 {
		d.fail(doc.Content[0], "figures", "is missing; expected a list such as [{figure: macs, margin: 0%%}]")
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return p, nil
}

// decoder reads the nodes of a policy and collects errors.
type decoder struct {
	file string
	errs []error
}

// field is a key with what reads its value.
type field struct {
	name string
	read func(n *yaml.Node, key string)
}

func (d *decoder) fail(n *yaml.Node, key, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, &PolicyError{d.file, n.Line, key, fmt.Sprintf(format, args...)})
	}
}

func (d *decoder) object(n *yaml.Node, key string, fields []field) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "expected keys and values")
		return
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		at := strings.TrimPrefix(key+"."+name, ".")
		k := slices.Index(names, name)
		switch {
		case k < 0:
			hint := ""
			if near := editdistance.Nearest(name, names); near != "" {
				hint = "; did you mean " + near + "?"
			}
			d.fail(n.Content[i], at, "is not a key here; expected one of %s%s", strings.Join(names, ", "), hint)
		case seen[name]:
			d.fail(n.Content[i], at, "appears twice")
		default:
			seen[name] = true
			fields[k].read(n.Content[i+1], at)
		}
	}
}

func (d *decoder) list(n *yaml.Node, key string, each func(n *yaml.Node, key string)) {
	if n.Kind != yaml.SequenceNode || len(n.Content) > maxList {
		d.fail(n, key, "expected a list of at most %d", maxList)
		return
	}
	for i, e := range n.Content {
		each(e, fmt.Sprintf("%s[%d]", key, i))
	}
}

// text reads a scalar.
func (d *decoder) text(n *yaml.Node, key, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null" {
		d.fail(n, key, "expected %s", want)
		return "", false
	}
	return n.Value, true
}

func (d *decoder) pattern(to *string) func(n *yaml.Node, key string) {
	return func(n *yaml.Node, key string) {
		s, ok := d.text(n, key, "a name or pattern such as models/*.tflite")
		if err := CheckPattern(s); ok && err != nil {
			d.fail(n, key, "is %v", err)
		}
		*to = s
	}
}

// CheckPattern refuses what is not a pattern of [Matches]. "**" would match like "*" in
// [path.Match], and not in all folders below.
func CheckPattern(s string) error {
	switch _, err := path.Match(s, ""); {
	case err != nil:
		return fmt.Errorf("%q, which is not a pattern; expected one such as models/*.tflite", s)
	case strings.Contains(s, "**"):
		return fmt.Errorf("%q: ** is not supported, and * ends at a slash; expected one pattern for each depth, such as models/*/*.onnx", s)
	}
	return nil
}

func (d *decoder) entry(n *yaml.Node, key string) (e Entry) {
	e.At = fmt.Sprintf("%s:%d: %s", d.file, n.Line, key)
	d.object(n, key, []field{
		{"model", d.pattern(&e.Model)},
		{"targets", func(n *yaml.Node, key string) {
			d.list(n, key, func(n *yaml.Node, key string) {
				s, ok := d.text(n, key, "a target such as host, stm32l4r5 or emulate:mps2-an505")
				if ok && slices.Contains(e.Targets, s) {
					d.fail(n, key, "%s appears twice", s)
				}
				e.Targets = append(e.Targets, s)
			})
		}},
		{"shapes", func(n *yaml.Node, key string) {
			d.list(n, key, func(n *yaml.Node, key string) {
				s, _ := d.text(n, key, "NAME=DIMS such as image=1x3x224x224")
				e.Shapes = append(e.Shapes, s)
			})
		}},
	})
	if e.Model == "" {
		d.fail(n, key, "has no model; expected a model file")
	}
	if len(e.Targets) == 0 {
		e.Targets = []string{Host}
	}
	return e
}

func (d *decoder) rule(n *yaml.Node, key string) Rule {
	r := Rule{Required: true}
	var floor *yaml.Node
	d.object(n, key, []field{
		{"figure", func(n *yaml.Node, key string) {
			r.Figure, _ = d.text(n, key, "the key of a figure such as macs")
			if _, ok := Lookup(r.Figure); r.Figure != "" && !ok {
				d.fail(n, key, "is %q, which is not a figure%s; docs/ci.md lists them", r.Figure, Nearest(r.Figure, Keys()))
			}
		}},
		{"model", d.pattern(&r.Model)},
		{"target", d.pattern(&r.Target)},
		{"better", func(n *yaml.Node, key string) {
			r.Better, _ = d.text(n, key, "lower, higher or same")
			if !slices.Contains([]string{Lower, Higher, Same}, r.Better) {
				d.fail(n, key, "is %q; expected lower, higher or same", n.Value)
			}
		}},
		{"margin", func(n *yaml.Node, key string) { r.Margin = d.margin(n, key) }},
		{"floor", func(n *yaml.Node, _ string) { floor = n }},
		{"required", func(n *yaml.Node, key string) {
			if n.Value != "true" && n.Value != "false" {
				d.fail(n, key, "is %q; expected true or false", n.Value)
			}
			r.Required = n.Value == "true"
		}},
	})
	if r.Figure == "" {
		d.fail(n, key, "has no figure; expected one such as macs")
	}
	if floor != nil {
		r.Floor = d.amount(floor, key+".floor", r.Figure)
	}
	if q, _ := Lookup(r.Figure); r.Better == "" && q.Better > 0 {
		r.Better = Higher
	} else if r.Better == "" {
		r.Better = Lower
	}
	return r
}

// Nearest is a hint with the names that are most like a wrong one, "" for none.
func Nearest(wrong string, names []string) string {
	if near := editdistance.Nearest(wrong, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	var list []string
	for _, n := range names {
		if len(wrong) > 2 && strings.Contains(n, strings.ToLower(wrong)) && len(list) < 3 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(list, " or ") + "?)"
}

// margin reads a fraction: "5%" or 0.05.
func (d *decoder) margin(n *yaml.Node, key string) float64 {
	s, ok := d.text(n, key, "a part such as 5%")
	if !ok {
		return 0
	}
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 10) || !percent && v > 1 { // 10 was meant to be 10%
		d.fail(n, key, "is %q; expected a part from 0%% to 1000%%, such as 5%% or 0.05", s)
		return 0
	}
	return v
}

// amount reads a floor in the unit of its figure.
func (d *decoder) amount(n *yaml.Node, key, figure string) float64 {
	q, _ := Lookup(figure)
	want := "a number of zero or more"
	switch q.Unit {
	case "B":
		want += ", also with a unit such as 4KiB"
	case "s":
		want = "a time with its unit, such as 50us"
	}
	s, ok := d.text(n, key, want)
	if !ok {
		return 0
	}
	var v float64
	var err error
	if q.Unit == "s" { // a number without a unit, except 0, was meant to be another one than seconds
		var t time.Duration
		t, err = time.ParseDuration(s)
		v = t.Seconds()
	} else {
		number, factor := s, 1.0
		if q.Unit == "B" {
			number, factor, _ = units.Cut(s, units.Bytes)
		}
		v, err = strconv.ParseFloat(number, 64)
		v *= factor
	}
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		d.fail(n, key, "is %q; expected %s", s, want)
		return 0
	}
	return v
}

func (d *decoder) measure(n *yaml.Node, key string, p *Policy) {
	d.object(n, key, []field{
		{"budget", func(n *yaml.Node, key string) {
			t, err := time.ParseDuration(n.Value)
			if err != nil || t <= 0 || t > 24*time.Hour {
				d.fail(n, key, "is %q; expected a time such as 60s, at most 24h", n.Value)
			}
			p.Budget = t
		}},
		{"processes", func(n *yaml.Node, key string) {
			v, err := strconv.Atoi(n.Value)
			if err != nil || v < 5 || v > 1000 {
				d.fail(n, key, "is %q; expected 5 to 1000: processes differ among themselves", n.Value)
			}
			p.Processes = v
		}},
	})
}

// Matches reports whether a pattern is for a name; one without a slash is for the last part, too.
func Matches(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	whole, _ := path.Match(pattern, name)
	last, _ := path.Match(pattern, path.Base(name))
	return whole || last && !strings.Contains(pattern, "/")
}

// Unused returns an error for the first rule whose patterns match none of some models and targets.
func (p *Policy) Unused(jobs [][2]string) error {
	for i, r := range p.Rules {
		if !slices.ContainsFunc(jobs, func(j [2]string) bool { return Matches(r.Model, j[0]) && Matches(r.Target, j[1]) }) {
			return &PolicyError{File: p.File, Key: fmt.Sprintf("figures[%d]", i), Text: fmt.Sprintf("%s is for no model and target of the gate: check model %q and target %q, or add the target to models", r.Figure, r.Model, r.Target)}
		}
	}
	return nil
}

// For lists the rules for a model on a target: of each figure the last one that matches.
func (p *Policy) For(model, target string) []Rule {
	var out []Rule
	for _, r := range p.Rules {
		if !Matches(r.Model, model) || !Matches(r.Target, target) {
			continue
		}
		r.measured = r.Figure == Latency && target == Host
		if i := slices.IndexFunc(out, func(o Rule) bool { return o.Figure == r.Figure }); i >= 0 {
			out[i] = r
		} else {
			out = append(out, r)
		}
	}
	return out
}
