package chip

import "testing"

// What a start of the program pays for one shipped target, and for all.
func BenchmarkRead(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if _, err := readShipped("chips/efr32xg24-mvp.yaml"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for id := range shipped() {
				if _, err := readShipped("chips/" + id + ".yaml"); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// Every shipped file is valid, so that lists need no error.
func TestShippedFiles(t *testing.T) {
	t.Parallel()
	if len(shipped()) == 0 {
		t.Fatal("no shipped files")
	}
	for id := range shipped() {
		if _, err := readShipped("chips/" + id + ".yaml"); err != nil {
			t.Error(err)
		}
	}
}
