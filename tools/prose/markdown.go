package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const longest = 25 // words in a sentence

var (
	linkTarget = regexp.MustCompile(`\]\([^)\s]*\)|\]\[[^\]]*\]`)
	image      = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	codeSpan   = regexp.MustCompile("``[^`]+``|`[^`\n]*(?:\n[^`\n]+)?`")
	htmlTag    = regexp.MustCompile(`<!--.*?-->|</?[a-zA-Z][^<>]*>`)
	listItem   = regexp.MustCompile(`^\s*(?:[-*+]|[0-9]+[.)])\s+`)
	definition = regexp.MustCompile(`^\[[^\]]+\]:\s`)
)

// A block is a part of a document.
type block struct {
	passage
	table, heading bool
}

// checkMarkdown checks the words, sentences and widths of a document.
func checkMarkdown(name, content string) []finding {
	var found []finding
	var words []passage
	for _, b := range blocks(content) {
		if !b.table {
			for i, line := range strings.Split(b.text, "\n") {
				if n := width(linkTarget.ReplaceAllString(line, "]")); n > columns && !definition.MatchString(line) {
					found = append(found, finding{name, b.line + i, "width", fmt.Sprintf("%d columns", n)})
				}
			}
		}
		text := plain(b.text)
		words = append(words, passage{b.line, text})
		if b.table || b.heading {
			continue
		}
		for _, s := range sentences(text) {
			if n := countWords(s.text); n > longest {
				found = append(found, finding{name, b.line + s.line, "sentence", fmt.Sprintf("%d words: %s", n, beginning(s.text))})
			}
		}
	}
	return append(found, dialect(name, words)...)
}

// blocks splits a document into paragraphs, list items, headings and rows of tables. Code blocks
// are left out.
func blocks(content string) []block {
	var list []block
	fence := ""
	open := false // whether the next line continues the last block
	for i, line := range strings.Split(content, "\n") {
		trimmed := strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			continue
		}
		item := listItem.MatchString(line)
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		switch {
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence, open = trimmed[:3], false
		case trimmed == "":
			open = false
		case strings.HasPrefix(trimmed, "|"):
			list, open = append(list, block{passage: passage{i + 1, line}, table: true}), false
		case strings.HasPrefix(trimmed, "#"):
			list, open = append(list, block{passage: passage{i + 1, line}, heading: true}), false
		case indented && !open && !item && (len(list) == 0 || !listItem.MatchString(list[len(list)-1].text)):
			// An indented code block.
		case open && !item:
			list[len(list)-1].text += "\n" + line
		default:
			list, open = append(list, block{passage: passage{i + 1, line}}), true
		}
	}
	return list
}

// plain replaces markup: a span of code counts as one word, a link as its text.
func plain(s string) string {
	s = codeSpan.ReplaceAllStringFunc(s, func(c string) string { return "`c`" + strings.Repeat("\n", strings.Count(c, "\n")) })
	s = image.ReplaceAllString(s, "")
	s = linkTarget.ReplaceAllString(s, "]")
	s = htmlTag.ReplaceAllString(s, "")
	s = address.ReplaceAllString(s, "address")
	return strings.NewReplacer("[", "", "]", "", "**", "", "__", "").Replace(listItem.ReplaceAllString(s, ""))
}

// Abbreviations whose full stop ends no sentence.
var abbreviations = map[string]bool{"e.g": true, "i.e": true, "etc": true, "vs": true, "cf": true, "approx": true, "fig": true, "no": true, "resp": true, "incl": true, "ca": true}

// sentences splits a paragraph; the line of a sentence counts from the paragraph's first.
func sentences(s string) []passage {
	var list []passage
	start := 0
	add := func(end int) {
		text := s[start:end]
		lead := len(text) - len(strings.TrimLeft(text, " \t\n"))
		if t := strings.TrimSpace(text); t != "" {
			list = append(list, passage{strings.Count(s[:start+lead], "\n"), t})
		}
		start = end
	}
	for i := 0; i < len(s); i++ {
		if !strings.ContainsRune(".!?", rune(s[i])) {
			continue
		}
		end := i + 1
		for end < len(s) && strings.ContainsRune(`"')*_`, rune(s[end])) {
			end++
		}
		next := strings.TrimLeft(s[end:], " \t\n")
		if next == s[end:] { // no blank, or the end
			continue
		}
		if s[i] == '.' {
			before := s[start:i]
			word := strings.ToLower(before[strings.LastIndexAny(before, " \n\t(")+1:])
			if abbreviations[word] && word != "no" && word != "etc" || word == "no" && next != "" && unicode.IsDigit(rune(next[0])) {
				continue
			}
		}
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(next, `"'(*_`))
		if first == utf8.RuneError || unicode.IsUpper(first) || unicode.IsDigit(first) || first == '`' || s[i] != '.' {
			add(end)
		}
	}
	add(len(s))
	return list
}

// countWords counts the words that hold a letter or a digit.
func countWords(s string) int {
	n := 0
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

func beginning(s string) string {
	f := strings.Fields(s)
	return strings.Join(f[:min(8, len(f))], " ") + " …"
}
