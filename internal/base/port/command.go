package port

import (
	"errors"
	"runtime"
	"strings"
)

// words is a command line split into words.
type words struct {
	list []string
	// shell says that the command has a pipe, a redirection, a variable or a pattern: only a
	// shell can run it.
	shell bool
}

// shellSigns are special to a shell unless they are quoted.
const shellSigns = "|&;<>()$`*?\n"

// split splits a command line into words as a shell does: blanks separate, '…' and "…" quote, a
// backslash escapes the next character. On Windows a backslash is literal, since paths contain
// it.
func split(s string, windows bool) (words, error) {
	var out words
	var word strings.Builder
	begun := false // a word, also an empty one in quotes
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'' && c != '\'':
			word.WriteByte(c)
		case c == '\\' && !windows:
			if i+1 == len(s) {
				return words{}, errors.New("the command ends in a backslash")
			}
			i++
			// Between double quotes a backslash is literal before most characters.
			if quote == '"' && !strings.ContainsRune("\\\"$`", rune(s[i])) {
				word.WriteByte('\\')
			}
			word.WriteByte(s[i])
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == '"':
			out.shell = out.shell || c == '$' || c == '`'
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ' || c == '\t':
			if begun {
				out.list = append(out.list, word.String())
				word.Reset()
				begun = false
			}
		default:
			out.shell = out.shell || strings.IndexByte(shellSigns, c) >= 0 || c == '~' && !begun
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return words{}, errors.New("a quote is not closed")
	}
	if begun {
		out.list = append(out.list, word.String())
	}
	if len(out.list) == 0 || out.list[0] == "" {
		return words{}, errors.New("a command is missing, as in exec:./pack")
	}
	return out, nil
}

// Program returns the program that a command line of "exec:" starts, as named there; "" if a
// shell has to run the command. alone says that it has no arguments. An error means that the
// command line is invalid.
func Program(command string) (name string, alone bool, err error) {
	w, err := split(command, runtime.GOOS == "windows")
	if err != nil || w.shell {
		return "", false, err
	}
	return w.list[0], len(w.list) == 1, nil
}

// Quote quotes a word for a command line of "exec:".
func Quote(word string) string {
	if runtime.GOOS == "windows" {
		return `"` + word + `"` // no name of a file has this sign there
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}
