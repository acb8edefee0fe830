package port

import (
	"errors"
	"runtime"
	"strings"
)

// words are a command line in pieces.
type words struct {
	list []string
	// shell tells that the command has a pipe, a redirection, a variable or a pattern: only
	// a shell can run it.
	shell bool
}

// shellSigns mean something to a shell where they are not quoted.
const shellSigns = "|&;<>()$`*?\n"

// split cuts a command line into words as a shell does: blanks separate, '…' and "…" hold
// together, a backslash takes the meaning of the next character. On Windows a backslash is
// one, since paths have it.
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
			// Between double quotes a backslash stands for itself before most characters.
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

// Program is the program that a command line of "exec:" starts, as it is named there; "" where a shell has
// to run the command. alone says that it has no arguments. The error is that of a line which makes no
// sense.
func Program(command string) (name string, alone bool, err error) {
	w, err := split(command, runtime.GOOS == "windows")
	if err != nil || w.shell {
		return "", false, err
	}
	return w.list[0], len(w.list) == 1, nil
}

// Quote writes a word for a command line of "exec:", whatever is in it.
func Quote(word string) string {
	if runtime.GOOS == "windows" {
		return `"` + word + `"` // no name of a file has this sign there
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}
