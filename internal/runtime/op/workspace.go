package op

import "github.com/opmeter/opmeter/internal/model/tensor"

// Workspace is working memory that calls share which run one after another: what [Call.Scratch] gives each of them may be what it gave
// another one. It is for one goroutine at a time.
type Workspace struct {
	blocks  []workspaceBlock
	open    bool
	growing bool // the call has been prepared before: it may want a little more each time
}

// workspaceBlock is a block of memory, of which the call that is being prepared has the first used bytes.
type workspaceBlock struct {
	data []byte
	used int
}

// workspaceAlign is what pieces begin at a multiple of, in bytes: a cache line, and the widest vector register.
const workspaceAlign = 64

// Begin lends all of the memory to a call that is about to be prepared, until [Rooms.End]. What the call has noted before is forgotten.
func (r *Workspace) Begin(c *Call) {
	r.growing = c.workspace == r
	c.workspace, c.scratch, c.packed, c.copied, c.copyRanges = r, nil, nil, nil, nil
	for i := range r.blocks {
		r.blocks[i].used = 0
	}
	r.open = true
}

// End ends what Begin began: a call that asks for memory later gets some of its own.
func (r *Workspace) End() { r.open = false }

// Bytes is the size of all that has been made.
func (r *Workspace) Bytes() int {
	n := 0
	for i := range r.blocks {
		n += len(r.blocks[i].data)
	}
	return n
}

// Poison writes to all of it, as other calls may, for tests of what they leave to those who come next.
func (r *Workspace) Poison() {
	for i := range r.blocks {
		for j := range r.blocks[i].data {
			r.blocks[i].data[j] = 0xfb
		}
	}
}

// alloc gives n bytes, of the block of which least is left then.
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
