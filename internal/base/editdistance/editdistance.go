// Package editdistance compares names that a user typed with names that exist.
package editdistance

// Of returns the number of characters to insert, delete, replace or swap with their neighbour to
// turn a into b. It counts bytes: the names are ASCII.
func Of(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+c)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, cur
	}
	return prev[len(b)]
}

// Nearest returns the word of the list most similar to s, "" if none is similar.
func Nearest(s string, list []string) string {
	best, cost := "", max(1, len(s)/2)+1
	for _, w := range list {
		if c := Of(s, w); c < cost {
			best, cost = w, c
		}
	}
	return best
}

// Suggest is a part of an error about s, such as "did you mean scope? ". It is empty if no word of
// the list is similar.
func Suggest(s string, list []string) string {
	if w := Nearest(s, list); w != "" {
		return "did you mean " + w + "? "
	}
	return ""
}
