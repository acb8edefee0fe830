package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkCommits returns what is wrong with the subjects in a range of commits, merges left out.
func checkCommits(root, commits string) ([]string, error) {
	cmd := exec.Command("git", "-C", root, "log", "--no-merges", "--format=%h %s", commits, "--")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git log %s: %w: %s", commits, err, strings.TrimSpace(stderr.String()))
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		hash, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if fault := subjectFault(subject); fault != "" {
			list = append(list, fmt.Sprintf("%s: %s: %s", hash, fault, subject))
		}
	}
	return list, nil
}

var subjectPrefix = regexp.MustCompile(`^(Revert "|[A-Z]{3,}: |[a-z0-9][a-z0-9_./*{},-]*(, [a-z0-9][a-z0-9_./*{},-]*)*: )`)

// subjectFault says what is wrong with a commit's subject, "" for nothing.
func subjectFault(s string) string {
	prefix := subjectPrefix.FindString(s)
	rest := s[len(prefix):]
	word, _, _ := strings.Cut(rest, " ")
	switch n := utf8.RuneCountInString(s); {
	case prefix == "":
		return `does not begin with "package: "`
	case rest == "":
		return "says nothing"
	case strings.HasPrefix(prefix, "Revert"):
		return ""
	case n > 72:
		return fmt.Sprintf("%d characters, at most 72", n)
	case strings.HasSuffix(s, "."):
		return "ends with a full stop"
	case capitalised(word):
		return "begins with a capital after the prefix"
	}
	return ""
}

// capitalised reports whether a word begins with its only capital: "Add", but not "ONNX" or "Go".
func capitalised(word string) bool {
	first, size := utf8.DecodeRuneInString(word)
	return word != "Go" && unicode.IsUpper(first) && len(word) > size && !strings.ContainsFunc(word[size:], func(r rune) bool {
		return !unicode.IsLower(r)
	})
}
