package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A term is a phrase that has a standard term. The words of a phrase are separated by blanks,
// alternatives by slashes. "*" stands for any word and "#" for a number. A phrase does not reach
// across punctuation.
type term struct {
	phrase string
	write  string
	before string // words that make the phrase right if they come before it
	after  string // words that make it right if they come after it
}

var terms = []term{
	// Absence.
	{
		"is/are/was/were/be no *", "“is not a …”, or name what it is", "there here where",
		"longer more less fewer better worse different larger smaller faster slower wider narrower higher lower shorter further later earlier " +
			"other matter use need doubt problem point reason chance way guarantee exception one such",
	},
	{"there is/are/was/were none", "absent, missing, not available", "", ""},
	{"nothing that shows", "not measurable", "", ""},
	{"says/say/said nothing of", "does not describe", "", ""},
	{"what there is", "what is available", "", ""},
	{"is/are not there", "is absent, is missing", "", ""},
	{"without one of its/their own", "without its own …", "", ""},
	{"that nobody", "that no caller, no user …", "", ""},
	{"a/the file that names itself", "self-describing file", "", ""},
	{"not to be had", "not available", "", ""},
	{"want of", "lack of; out of memory", "", ""},

	// Figures and their quality.
	{"to quote #", "recommended figure: median of undisturbed runs", "", ""},
	{"at ref/reference speed", "normalised latency (to the reference loop)", "", ""},
	{"far below both", "overhead-bound (below a tenth of either limit)", "", ""},
	{"do not use", "unreliable", "", "*"},
	{"the instruments add", "profiling overhead", "", ""},
	{"what the instruments", "profiling overhead", "", ""},
	{"is/are/was/were/be reconciled", "sum of layers against end-to-end latency", "", ""},
	{"how well it/they is/are known", "measurement quality", "", ""},
	{"in the slow/quick hour", "under load / on an idle machine", "", ""},
	{"of the right size", "right to within …", "", ""},
	{"near/at the limit of arithmetic", "compute-bound", "", ""},
	{"near/at the limit of memory", "memory-bound", "", ""},
	{"each with each", "every combination", "", ""},

	// Memory and plans.
	{"what is alive", "live tensors; peak activation memory", "", ""},
	{"alive at one/a/the time/same", "live at the same time", "", ""},
	{"tensors/values/activations/buffers alive", "live tensors", "", ""},
	{"rooms", "scratch buffers, workspaces; packages", "", ""},
	{"room of", "workspace of, capacity of", "", ""},
	{"own/whose/its/their/the/this/that/one/each/every/which room", "workspace, capacity, package", "", "for"},
	{"a room", "a workspace, a package", "", ""},

	// Engines.
	{"guest/guests engine/engines/runtime/runtimes", "external engine", "", ""},
	{"engines/tools/runtimes/files/libraries/records/profiles/traces of others", "external engines, files of other tools", "", ""},
	{"records of other tools", "profiles and traces of other tools", "", ""},

	// Running and comparing.
	{"take/takes/took/taken/taking turns", "interleaved (A/B, ABBA)", "", ""},
	{"in turns", "interleaved, alternately", "", ""},
	{"in/at one go", "in a single pass", "", ""},
	{"to the bit", "bit-exact", "", "width mask pattern count depth order field position number string stream vector level"},
	{"bit by bit the same", "bit-exact", "", ""},
	{"of the/one same look", "identical, equivalent", "", ""},
	{"of one look", "identical, equivalent", "", ""},
	{"looks/look/looked alike", "is identical, is equivalent", "", ""},
	{"of the same kind and size", "of the same type and size", "", ""},
	{"beside itself/themselves", "compared with itself", "", ""},

	// Actions.
	{"hand/hands/handed/handing over", "pass, return, transfer", "", ""},
	{"hands/handed/handing out", "returns, allocates", "", ""},
	{"gives/give/gave/given/giving back", "returns, releases", "", ""},
	{"lets/let/letting go", "releases, closes", "", ""},
	{"takes/take/took/taken/taking apart", "parses, splits, unpacks", "", ""},
	{"goes/go/going/gone by the/its/their", "is determined by", "", "way name"},
	{"has/have/had a say", "counts, has a weight", "", ""},
	{"is/are looked through", "is searched", "", ""},
	{"had the processor", "preempted, used the CPU", "", ""},
	{"does/do as the host does", "behaves as on the host", "", ""},

	// Numbers, kernels and layouts.
	{"few bits", "low-bit (2-, 4-bit)", "", ""},
	{"narrower weights/weight/types/type/numbers/elements", "lower-precision weights, smaller types", "", ""},
	{"minimal filtering", "Winograd F(m×m, r×r)", "", ""},
	{"numbers/number of # bits", "int8, 8-bit integers", "", ""},
	{"whole numbers/number", "integers, integer", "", ""},
	{"product/products of matrices", "matrix multiplication, GEMM", "", ""},
	{"windows/window of one position", "1×1 convolution", "", ""},
	{"single weights", "unstructured sparsity", "", ""},
	{"bonds/bond between", "channel dependencies", "", ""},
	{"correction of what is left", "error compensation", "", ""},
	{"loops/loop in vectors", "SIMD kernels", "", ""},
	{"steps of a/the plan", "nodes of the execution plan", "", ""},

	{"sum/sums/maxima/minima/means/products/rows/lines/vectors of codes", "quantised values", "", ""},
	{"8-bit/4-bit/2-bit/16-bit/int8/uint8/int4 codes", "quantised values", "", ""},
	{"picture/pictures", "image, chart, screenshot", "big bigger full fuller whole", ""},

	// Grammar.
	{"is/are known of", "name the figure or the source", "", ""},
	{"those of others", "those of other …: name the thing", "", ""},
	{"that of others", "that of other …: name the thing", "", ""},
	{"an own", "its own, a separate", "", ""},
	{"as well as may be", "as well as possible", "", ""},
	{"whereof/wherein/whereupon/whither/hereof/therein/thereof/wherefore", "plain words: of which, in it …", "", ""},
	{"is/are of no", "has no", "", "use help interest importance consequence value concern"},
	{"for itself", "separately, on its own", "speak speaks spoke speaking", ""},
	{"stands/stand beside", "is next to, is listed with", "", ""},
	{"lies/lie with", "is in, belongs to", "", ""},
}

// Words that fail in exported names.
var nameWords = map[string]string{
	"Room": "workspace, capacity, package", "Rooms": "scratch buffers, workspaces", "Guest": "external engine", "Guests": "external engines",
	"Alive": "live", "Reconciled": "sum of layers", "Narrower": "lower precision", "Turns": "interleaved", "Strangers": "external",
}

// A rule is a term made ready for matching.
type rule struct {
	term
	words         [][]string
	before, after []string
}

// rules holds the rules by the first word of their phrases.
var rules = func() map[string][]rule {
	m := map[string][]rule{}
	for _, t := range terms {
		r := rule{term: t, before: strings.Fields(t.before), after: strings.Fields(t.after)}
		for w := range strings.FieldsSeq(t.phrase) {
			r.words = append(r.words, strings.Split(w, "/"))
		}
		for _, w := range r.words[0] {
			m[w] = append(m[w], r)
		}
	}
	return m
}()

// A word is a word or a punctuation mark of a text.
type word struct {
	text string // in lower case
	at   int
}

var wordPattern = regexp.MustCompile("[\\pL\\pN][\\pL\\pN'’_.-]*[\\pL\\pN]|[\\pL\\pN]|[.,;:!?()\"“”`…|%/=<>{}\\[\\]]|\\n[ \\t]*\\n")

// dialect reports phrases that have a standard term.
func dialect(name string, texts []passage) []finding {
	var found []finding
	for _, p := range texts {
		var words []word
		for _, m := range wordPattern.FindAllStringIndex(p.text, -1) {
			words = append(words, word{strings.ToLower(p.text[m[0]:m[1]]), m[0]})
		}
		for i := range words {
			for _, r := range rules[words[i].text] {
				if !r.matches(words, i) {
					continue
				}
				end := i + len(r.words)
				last := words[end-1]
				found = append(found, finding{
					name, p.line + strings.Count(p.text[:words[i].at], "\n"), "dialect",
					fmt.Sprintf("%q: write %s", strings.Join(strings.Fields(p.text[words[i].at:last.at+len(last.text)]), " "), r.write),
				})
				break
			}
		}
	}
	return found
}

func (r rule) matches(words []word, i int) bool {
	if i+len(r.words) > len(words) {
		return false
	}
	for j, alternatives := range r.words {
		w := words[i+j].text
		first := rune(w[0])
		switch {
		case slices.Contains(alternatives, w):
		case alternatives[0] == "*" && (unicode.IsLetter(first) || first > unicode.MaxASCII):
		case alternatives[0] == "#" && unicode.IsDigit(first):
		default:
			return false
		}
	}
	// An exception may be the last word that "*" stands for.
	last := words[i+len(r.words)-1].text
	if r.words[len(r.words)-1][0] == "*" && slices.Contains(r.after, last) {
		return false
	}
	if next := i + len(r.words); next < len(words) && (slices.Contains(r.after, words[next].text) ||
		slices.Contains(r.after, "*") && unicode.IsLetter(rune(words[next].text[0]))) {
		return false
	}
	return i == 0 || !slices.Contains(r.before, words[i-1].text)
}

var camel = regexp.MustCompile(`[A-Z]+[a-z0-9]*`)

// dialectName reports words of the dialect in an exported name.
func dialectName(name string, line int, id string) []finding {
	var found []finding
	for _, w := range camel.FindAllString(id, -1) {
		if write, ok := nameWords[w]; ok {
			found = append(found, finding{name, line, "dialect", fmt.Sprintf("name %s: %q: write %s", id, w, write)})
		}
	}
	return found
}
