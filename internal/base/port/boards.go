package port

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed boards.txt
var boardsText string

// boardTable is the table of boards by "vid:pid" and "vid:*".
var boardTable = sync.OnceValue(func() map[string]string {
	m, err := parseBoards(boardsText)
	if err != nil {
		panic(err) // a test reads the table
	}
	return m
})

// parseBoards parses a table of boards: lines of "vid:pid name", comments after #.
func parseBoards(text string) (map[string]string, error) {
	m := map[string]string{}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, name, ok := strings.Cut(line, " ")
		vid, pid, colon := strings.Cut(key, ":")
		_, bad := strconv.ParseUint(vid, 16, 16)
		if pid != "*" && bad == nil {
			_, bad = strconv.ParseUint(pid, 16, 16)
		}
		switch {
		case !ok || !colon || bad != nil || key != strings.ToLower(key):
			return nil, fmt.Errorf("line %d of the table of boards: %q is not a line of vid:pid and a name", n+1, line)
		case m[key] != "":
			return nil, fmt.Errorf("line %d of the table of boards: %s is there twice", n+1, key)
		}
		m[key] = strings.TrimSpace(name)
	}
	return m, nil
}

// board guesses the board with these USB ids, "" if unknown.
func board(vid, pid uint16) string {
	t := boardTable()
	if name := t[fmt.Sprintf("%04x:%04x", vid, pid)]; name != "" {
		return name
	}
	return t[fmt.Sprintf("%04x:*", vid)]
}
