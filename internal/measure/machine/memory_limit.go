package machine

// Free is the memory that this process may still take, in bytes: what is free on the
// computer, and what the limits of the process, its user and its container leave. false
// where the system does not tell.
func Free() (int64, bool) { return system{"/"}.free() }

// MemoryLimit is what a model's values may take, in bytes: half of this computer's
// memory, and no more than the limits of the process and what is free leave room for;
// 8 GiB where nothing is known.
func MemoryLimit() int {
	limit := int64(16 << 30)
	if n := MemoryBytes(); n != nil && *n > 0 {
		limit = *n
	}
	limit /= 2
	if n, ok := Free(); ok {
		// The collector needs room beside what lives, and so do the model's own file and
		// inputs.
		limit = min(limit, max(n/2, 1<<20))
	}
	return int(limit)
}

// HeapRoom is by how much the heap may grow while nothing is collected, in bytes.
func HeapRoom() int64 {
	room := int64(2 << 30)
	if n, ok := Free(); ok {
		room = min(room, max(n/4, 16<<20))
	}
	return room
}
