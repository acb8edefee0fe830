package op

import "github.com/opmeter/opmeter/internal/model/tensor"

// Workspace is scratch memory shared by calls that run one after another: [Call.Scratch] may
// return the same bytes to several of them. It must be used by one goroutine at a time.
type Workspace struct {
	blocks  []workspaceBlock
	open    bool
	growing bool // the call was prepared before and may need slightly more each time
}

// workspaceBlock is a block of memory. The call that is being prepared has its first used bytes.
type workspaceBlock struct {
	data []byte
	used int
}

// workspaceAlign is the alignment of reservations in bytes: a cache line, and the widest vector
// register.
const workspaceAlign = 64

// Begin makes all of the memory available to a call that is about to be prepared, until
// [Workspace.End]. It discards the call's earlier records.
func (r *Workspace) Begin(c *Call) {
	r.growing = c.workspace == r
	c.workspace, c.scratch, c.packed, c.copied, c.copyRanges, c.kept = r, nil, nil, nil, nil, false
	for i := range r.blocks {
		r.blocks[i].used = 0
	}
	r.open = true
}

// End ends the preparation that Begin started. A call that requests scratch memory later gets its
// own.
func (r *Workspace) End() { r.open = false }

// Bytes is the total size of all blocks.
func (r *Workspace) Bytes() int {
	n := 0
	for i := range r.blocks {
		n += len(r.blocks[i].data)
	}
	return n
}

// Poison overwrites all of the memory, as other calls may, for tests that look for calls that
// rely on old content.
func (r *Workspace) Poison() {
	for i := range r.blocks {
		for j := range r.blocks[i].data {
			r.blocks[i].data[j] = 0xfb
		}
	}
}

// alloc returns n bytes from the block with the least space left (best fit).
func (r *Workspace) alloc(n int) []byte {
	best := -1
	left := func(i int) int { return len(r.blocks[i].data) - r.blocks[i].used }
	for i := range r.blocks {
		if left(i) >= n && (best < 0 || left(i) < left(best)) {
			best = i
		}
	}
	if best < 0 {
		best = len(r.blocks)
		size := n
		if r.growing {
			size = max(n, r.Bytes()/2)
		}
		r.blocks = append(r.blocks, workspaceBlock{data: tensor.New(tensor.Uint8, size).Data})
	}
	b := &r.blocks[best]
	at := b.used
	b.used = min(len(b.data), at+(n+workspaceAlign-1)/workspaceAlign*workspaceAlign)
	return b.data[at:][:n:n]
}
