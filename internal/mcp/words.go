package mcp

import (
	"math/big"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// schemaPrefix begins an error of the protocol's library about arguments.
const schemaPrefix = `validating "arguments": `

var (
	schemaPlace = lazyregexp.New(`^validating ([^ :]+): `)
	schemaBound = lazyregexp.New(`^(minimum|maximum|minLength|maxLength|minItems|maxItems|maxProperties): (?s:.*?)([0-9./]+)(?: Unicode code points,| properties,)? (?:is )?(?:less|greater|fewer|more) than ([0-9.]+)$`)
	schemaType  = lazyregexp.New(`(?s)^type: .* has type ("[a-z]+"), want (?:one of )?(".*")$`)
)

// bounds are the words for what a bound limits.
var bounds = map[string][2]string{
	"minimum":       {"", "at least "},
	"maximum":       {"", "at most "},
	"minLength":     {" characters", "at least "},
	"maxLength":     {" characters", "at most "},
	"minItems":      {" entries", "at least "},
	"maxItems":      {" entries", "at most "},
	"maxProperties": {" entries", "at most "},
}

// plainSchema says in words what is wrong with arguments. Other errors stay as they are.
func plainSchema(text string) string {
	rest, ok := strings.CutPrefix(text, schemaPrefix)
	if !ok {
		return text
	}
	name := ""
	for {
		m := schemaPlace.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		if at, ok := strings.CutPrefix(m[1], "/properties/"); ok {
			name, _, _ = strings.Cut(at, "/")
			name += ": "
		}
		rest = rest[len(m[0]):]
	}
	if m := schemaBound.FindStringSubmatch(rest); m != nil {
		w := bounds[m[1]]
		return name + plainNumber(m[2]) + w[0] + ", expected " + w[1] + plainNumber(m[3])
	}
	if m := schemaType.FindStringSubmatch(rest); m != nil {
		return name + "is of type " + m[1] + ", expected " + m[2]
	}
	if list, ok := strings.CutPrefix(rest, "required: missing properties: "); ok {
		return name + "missing arguments " + list
	}
	return name + strings.Replace(rest, "unexpected additional properties", "unexpected arguments", 1)
}

// plainNumber writes a fraction, such as 61/1 or 60.000000, with few digits.
func plainNumber(s string) string {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return s
	}
	if r.IsInt() {
		return clip(r.Num().String())
	}
	return strings.TrimRight(r.FloatString(9), "0")
}

// agentWords puts arguments of tools in place of flags that an agent cannot give. A command line
// stays whole, and flags without an argument are named as what they are.
func agentWords(text string) string {
	for _, p := range phrases {
		text = p.is.ReplaceAllString(text, p.becomes)
	}
	if commandLine.MatchString(text) {
		return text + " (a command for a terminal)"
	}
	var left []string
	text = flagWord.ReplaceAllStringFunc(text, func(flag string) string {
		if arg, ok := flagArgs[flag]; ok {
			return arg
		}
		if !slices.Contains(left, flag) {
			left = append(left, flag)
		}
		return flag
	})
	if len(left) > 0 {
		text += " (in a terminal only: " + strings.Join(left, ", ") + ")"
	}
	return text
}

var (
	// commandLine is a command with a flag.
	commandLine = lazyregexp.New(`\bopmeter [a-z]+ (?:[^;]* )?--?[a-z]`)
	flagWord    = lazyregexp.New(`--[a-z]+(?:-[a-z]+)*`)
)

// phrases are advice for a terminal with what replaces it.
var phrases = []struct {
	is      *lazyregexp.Regexp
	becomes string
}{
	{lazyregexp.New(` or a higher limit \([^)]*\)`), ""}, // tools have no memory limit
	{lazyregexp.New(`\(see --on TARGET\)`), "(see the tool estimate)"},
	{lazyregexp.New(`--on device:PORT \(opmeter devices lists ports\)`), "with opmeter in a terminal"},
	{lazyregexp.New(`: -o page\.html`), " of a page, which the terminal writes"},
	{lazyregexp.New(`--engine opmeter,`), "engine "},
	{lazyregexp.New(`--time ([0-9]+)s\b`), "seconds $1"},
	{lazyregexp.New(`\bopmeter targets\b`), "the tool fit"},
	{lazyregexp.New(`\bopmeter compare(?: A B)?($|[.,;)])`), "the tool compare$1"},
}

// flagArgs are the arguments for flags of the program.
var flagArgs = map[string]string{
	"--shape": "shapes", "--batch": "batch", "--engine": "engine", "--threads": "threads", "--time": "seconds",
	"--on": "target", "--model": "model", "--from": "format", "--quantity": "quantity",
	"--latency": "latency_s", "--ram": "ram_bytes", "--flash": "flash_bytes",
}
