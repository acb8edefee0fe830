package machine

// Free returns how many more bytes this process may use: limited by free memory and by the limits
// of the process, its user and its container. It returns false if the system does not provide
// them.
func Free() (int64, bool) { return system{"/"}.free() }

// MemoryLimit returns how many bytes a model's values may use: half of this computer's memory,
// within the limits of the process and the free memory; 8 GiB if nothing is known.
func MemoryLimit() int {
	limit := int64(16 << 30)
	if n := MemoryBytes(); n != nil && *n > 0 {
		limit = *n
	}
	limit /= 2
	if n, ok := Free(); ok {
		// The garbage collector needs memory beyond the live heap, and so do the model's file and
		// inputs.
		limit = min(limit, max(n/2, 1<<20))
	}
	return int(limit)
}

// HeapGrowth returns by how many bytes the heap may grow without garbage collection.
func HeapGrowth() int64 {
	room := int64(2 << 30)
	if n, ok := Free(); ok {
		room = min(room, max(n/4, 16<<20))
	}
	return room
}
