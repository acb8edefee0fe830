package sensiml

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Texts in YAML as PyYAML writes them: plain where that reads back as the same text, in single
// quotes where not, in double quotes where it has characters that need escapes.

// yamlTyped matches plain texts that YAML 1.1 reads as something else than a text.
var yamlTyped = lazyregexp.New(`^(?:` + strings.Join([]string{
	`yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF`,
	`[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?`, `\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?`,
	`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*`, `[-+]?\.(?:inf|Inf|INF)`, `\.(?:nan|NaN|NAN)`,
	`[-+]?0b[0-1_]+`, `[-+]?0[0-7_]+`, `[-+]?(?:0|[1-9][0-9_]*)`, `[-+]?0x[0-9a-fA-F_]+`, `[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+`,
	`<<|=|~|null|Null|NULL|`,
	`[0-9]{4}-[0-9]{2}-[0-9]{2}`,
	`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?`,
}, "|") + `)$`)

// yamlText writes a text.
func yamlText(s string) string {
	special := strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
	switch {
	case special:
		return yamlDouble(s)
	case yamlPlain(s):
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

func yamlPlain(s string) bool {
	if yamlTyped.MatchString(s) || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		return false
	}
	for i, c := range s {
		before := i == 0 || s[i-1] == ' '
		behind := i == len(s)-1 || s[i+1] == ' '
		switch {
		case i == 0 && strings.ContainsRune("#,[]{}&*!|>'\"%@`", c):
			return false
		case i == 0 && (c == '?' || c == '-') && behind, c == ':' && behind, c == '#' && before:
			return false
		}
	}
	return true
}

func yamlDouble(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	named := map[rune]string{0: "0", 7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 27: "e", '"': `"`, '\\': `\`, 0x85: "N", 0xa0: "_", 0x2028: "L", 0x2029: "P"}
	for _, c := range s {
		name, ok := named[c]
		switch {
		case ok:
			b.WriteString(`\` + name)
		case c >= ' ' && c <= '~':
			b.WriteRune(c)
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02X`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			fmt.Fprintf(&b, `\U%08X`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
