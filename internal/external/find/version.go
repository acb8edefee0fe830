package find

import (
	"cmp"
	"strings"
)

// isVersion reports whether a text is a version prefix rather than a path.
func isVersion(s string) bool {
	if s == "" || s[0] < '0' || s[0] > '9' || len(s) > 64 {
		return false
	}
	for _, ending := range []string{".so", ".dll", ".dylib"} {
		if _, ok := cutSuffixFold(s, ending); ok {
			return false
		}
	}
	return strings.Trim(strings.ToLower(s), "0123456789abcdefghijklmnopqrstuvwxyz.+-_") == ""
}

// hasPrefix reports whether a version begins with want, compared by component: 1.20 is a prefix
// of 1.20.1 and not of 1.200.
func hasPrefix(version, want string) bool {
	rest, ok := strings.CutPrefix(version, strings.TrimSuffix(want, "."))
	return ok && version != "" && (rest == "" || strings.ContainsRune(".+-", rune(rest[0])))
}

// compare orders versions by their numbers. One that continues with letters ("rc1", "dev2025")
// sorts before the one that does not. An unknown version sorts first.
func compare(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	a, b = plainVersion(a), plainVersion(b)
	for a != "" || b != "" {
		var x, y string
		x, a = part(a)
		y, b = part(b)
		nx, lx := number(x)
		ny, ly := number(y)
		// A part that is missing is 0.
		if c := cmp.Or(cmp.Compare(len(nx), len(ny)), strings.Compare(nx, ny), cmp.Compare(rank(lx), rank(ly)), strings.Compare(lx, ly)); c != 0 {
			return c
		}
	}
	return 0
}

// plainVersion removes build metadata and separators before letters, which have no meaning:
// 1.0.dev1 equals 1.0dev1.
func plainVersion(s string) string {
	s, _, _ = strings.Cut(s, "+")
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(".-_", s[i]) >= 0 && i+1 < len(s) && (s[i+1]|0x20) >= 'a' && (s[i+1]|0x20) <= 'z' {
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// part splits off the first component of a version.
func part(s string) (first, rest string) {
	i := strings.IndexAny(s, ".-_")
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// number splits a component into its digits, without leading zeros, and the rest.
func number(s string) (digits, letters string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}

// rank orders suffixes of a number: pre-releases, then the release, then post-releases.
func rank(letters string) int {
	switch {
	case letters == "":
		return 1
	case strings.HasPrefix(letters, "post"):
		return 2
	}
	return 0
}
