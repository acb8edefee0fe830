package profile

import "fmt"

// LanguageModel describes a language model with caches of keys and values, and its phases.
type LanguageModel struct {
	// Cache describes the caches.
	Cache KVCache `json:"cache"`
	// EncoderLength is the number of positions that the decoder reads of an encoder, absent for models
	// without one.
	EncoderLength *int64 `json:"encoder_length,omitzero"`
	// ContextLength is the largest number of positions, as the file says.
	ContextLength *int64 `json:"context_length,omitzero"`
	// Phases are the measured ones: runs of an encoder, prefills, then decodes.
	Phases []Phase `json:"phases"`
	// Memory says what a decode needs by context: in the measured contexts, and in the longest one.
	Memory []ContextMemory `json:"memory,omitzero"`
}

// ContextMemory is what a decode needs with so many positions in the cache. The program itself,
// with the description of the model, needs some MiB more.
type ContextMemory struct {
	// Context is the number of positions in the cache before the run.
	Context int64 `json:"context"`
	// WeightsBytes is that of [Memory], or the size in the file where the former is not known.
	WeightsBytes int64 `json:"weights_bytes"`
	// CacheBytes is the size of the caches that a run reads.
	CacheBytes int64 `json:"cache_bytes"`
	// PlanBytes is what the engine plans for a run: activations, copies of caches and scratch memory.
	PlanBytes int64 `json:"plan_bytes"`
}

// Bytes is the sum.
func (c *ContextMemory) Bytes() int64 { return c.WeightsBytes + c.CacheBytes + c.PlanBytes }

// KVCache describes the caches of keys and values.
type KVCache struct {
	// Layers is the number of layers with a cache, Heads that of the heads of keys in each, HeadSize
	// the elements of a head. The last two are absent if layers differ.
	Layers   int64  `json:"layers"`
	Heads    *int64 `json:"heads,omitzero"`
	HeadSize *int64 `json:"head_size,omitzero"`
	// DType is the element type.
	DType string `json:"dtype"`
	// Shared says that the caches are buffers of Capacity positions. Others grow with each run.
	Shared   bool   `json:"shared,omitzero"`
	Capacity *int64 `json:"capacity,omitzero"`
	// PositionBytes is the size of one position in all caches, for one sequence.
	PositionBytes int64 `json:"position_bytes"`
	// CrossBytes is the size of the keys and values of the encoder's positions, StateBytes that of
	// states which no position adds to. Both are for one sequence, and absent without such caches.
	CrossBytes *int64 `json:"cross_bytes,omitzero"`
	StateBytes *int64 `json:"state_bytes,omitzero"`
}

// PhaseKind names a phase.
type PhaseKind string

// Phases of a language model.
const (
	EncodePhase  PhaseKind = "encode"  // the input of an encoder
	PrefillPhase PhaseKind = "prefill" // the tokens of a prompt, with an empty cache
	DecodePhase  PhaseKind = "decode"  // one token, with a filled cache
)

// Phase is a measured run of a language model. Figures are of a run, of the whole batch.
type Phase struct {
	// Kind names the phase.
	Kind PhaseKind `json:"kind"`
	// Batch is the number of sequences, Tokens that of the new tokens of each, or of the positions
	// that an encoder makes, Context that of the positions in the cache before.
	Batch   int64 `json:"batch"`
	Tokens  int64 `json:"tokens"`
	Context int64 `json:"context"`
	// Quantity is the key of the layers' times in this phase: latency_s in the phase that the other
	// figures of the profile are of.
	Quantity string `json:"quantity"`
	// Latency is the recommended figure, without tokenizer and sampling: time to first token of a
	// prefill, beside the time of the encoder in models with one; time per output token of a decode.
	Latency *Metric `json:"latency_s,omitzero"`
	// TokensPerS is the number of tokens of all sequences divided by Latency.
	TokensPerS *Metric `json:"tokens_per_s,omitzero"`
	// Reconcile compares the sum of the layers in this phase with the wall clock.
	Reconcile *Reconcile `json:"reconcile,omitzero"`
	// Trust says how far Latency can be relied upon.
	Trust *Trust `json:"trust,omitzero"`
	// Ops is the number of arithmetic operations, without those of TopK.
	Ops *int64 `json:"ops,omitzero"`
	// WeightsReadBytes is the size of the weights that the layers read: as stored, of embeddings and
	// rotary tables only the rows of the tokens, of experts only as many as the tokens can choose.
	WeightsReadBytes *int64 `json:"weights_read_bytes,omitzero"`
	// CacheReadBytes is the size of the keys, values and states before, CacheWrittenBytes of the new
	// ones.
	CacheReadBytes    int64 `json:"cache_read_bytes"`
	CacheWrittenBytes int64 `json:"cache_written_bytes"`
	// CacheCopiedBytes is what the engine writes to the caches after the run beside the new ones:
	// copies of those before, and zeros behind them in buffers.
	CacheCopiedBytes *int64 `json:"cache_copied_bytes,omitzero"`
	// Roof places the phase under the roofline: Ops at the rate of the type with the most
	// multiply-accumulates, against weights and caches at the rate of memory. A phase that exceeds
	// the rate of a level raises it, for all phases.
	Roof *Roof `json:"roof,omitzero"`
	// RoofTokensPerS is the number of tokens per second at the limits of Roof.
	RoofTokensPerS *float64 `json:"roof_tokens_per_s,omitzero"`
	// RAMBytes is the memory that the engine plans for a run, like that of [Totals].
	RAMBytes *int64 `json:"ram_bytes,omitzero"`
}

// Name says which phase it is: "prefill 128", "decode at 1024, batch 4".
func (p *Phase) Name() string {
	s := fmt.Sprintf("%s %d", p.Kind, p.Tokens)
	if p.Kind == DecodePhase {
		s = fmt.Sprintf("decode at %d", p.Context)
	}
	if p.Batch > 1 {
		s += fmt.Sprintf(", batch %d", p.Batch)
	}
	return s
}

func (c *checker) language(l *LanguageModel) {
	if l == nil {
		return
	}
	const at = "language_model"
	k := &l.Cache
	c.need(at+".cache.dtype", k.DType)
	c.counts(at, named{"cache.layers", &k.Layers}, named{"cache.heads", k.Heads}, named{"cache.head_size", k.HeadSize},
		named{"cache.capacity", k.Capacity}, named{"cache.position_bytes", &k.PositionBytes}, named{"cache.cross_bytes", k.CrossBytes}, named{"cache.state_bytes", k.StateBytes},
		named{"encoder_length", l.EncoderLength}, named{"context_length", l.ContextLength})
	for i := range l.Memory {
		m := &l.Memory[i]
		c.counts(fmt.Sprintf("%s.memory[%d]", at, i), named{"context", &m.Context}, named{"weights_bytes", &m.WeightsBytes}, named{"cache_bytes", &m.CacheBytes}, named{"plan_bytes", &m.PlanBytes})
	}
	for i := range l.Phases {
		p, at := &l.Phases[i], fmt.Sprintf("%s.phases[%d]", at, i)
		c.word(at+".kind", string(p.Kind), string(EncodePhase), string(PrefillPhase), string(DecodePhase))
		if !isKey(p.Quantity) {
			c.fail(at+".quantity:", "%v", badKey(p.Quantity))
		}
		c.counts(at, named{"batch", &p.Batch}, named{"tokens", &p.Tokens}, named{"context", &p.Context}, named{"ops", p.Ops}, named{"weights_read_bytes", p.WeightsReadBytes},
			named{"cache_read_bytes", &p.CacheReadBytes}, named{"cache_written_bytes", &p.CacheWrittenBytes}, named{"cache_copied_bytes", p.CacheCopiedBytes}, named{"ram_bytes", p.RAMBytes})
		c.metrics(at, metricNamed{"latency_s", p.Latency}, metricNamed{"tokens_per_s", p.TokensPerS})
		c.reconcile(p.Reconcile)
		c.trust(p.Trust)
		c.roof(at+".roof", p.Roof)
		c.reals(at, realNamed{"roof_tokens_per_s", p.RoofTokensPerS})
	}
}
