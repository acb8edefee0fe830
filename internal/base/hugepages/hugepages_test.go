package hugepages

import "testing"

func TestMake(t *testing.T) {
	t.Parallel()
	EnlargeHeap()
	for _, n := range []int{0, 1, leastBytes/4 - 1, leastBytes / 4, 5_000_000} {
		v := Make[float32](n)
		if len(v) != n {
			t.Fatalf("%d elements, want %d", len(v), n)
		}
		for i := range v {
			if v[i] != 0 {
				t.Fatalf("%d elements: element %d is %v, want 0", n, i, v[i])
			}
			v[i] = float32(i)
		}
		for i := range v {
			if v[i] != float32(i) {
				t.Fatalf("%d elements: element %d is %v after it was written", n, i, v[i])
			}
		}
	}
}
