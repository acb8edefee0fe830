package sensiml

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Kind says what a message is.
type Kind int

// Kinds of messages.
const (
	// KindResult is a class or the value of a regression.
	KindResult Kind = iota + 1
	// KindCycles has the counts of the generators and of the classifier.
	KindCycles
	// KindTimes has seconds, by the firmware's own idea of its clock.
	KindTimes
	// KindMap names the models of the pack.
	KindMap
	// KindDisabled says that a model was built without profiling.
	KindDisabled
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"?", "result", "cycles", "times", "map", "disabled"}[max(0, min(int(k), 5))]
}

// Message is a line of a device, or an object in one.
type Message struct {
	Kind  Kind
	Model int
	// Slots are the figures of Cycles (counts as printed, which may be negative) or Times (seconds)
	// in the order of the firmware's array; Classifier is that of the classifier.
	Slots      []float64
	Classifier float64
	// Class is the class number of a Result, Value the value of a regression; one is set.
	Class *int
	Value *float64
	// SegmentStart and SegmentLength are samples, nil where the line does not say.
	SegmentStart, SegmentLength *int64
	// Vector is the feature vector and Tensor the classifier's output, nil where the line has none.
	// What the firmware printed as not a number is NaN.
	Vector, Tensor []float64
	// Names are those of a Map, by model.
	Names map[int]string
	// Repaired says that a comma before a bracket was taken away.
	Repaired bool
	// Line is the number of the line, from 1, and Offset its first byte in the stream.
	Line, Offset int64
}

// Reason says why something in the stream was not read.
type Reason string

// Reasons.
const (
	ReasonText       Reason = "text"       // no object: a line of text, debug output, noise
	ReasonCut        Reason = "cut"        // an object that the line ends in the middle of
	ReasonSyntax     Reason = "syntax"     // an object that is damaged
	ReasonIncomplete Reason = "incomplete" // an object without what its kind must have
	ReasonForeign    Reason = "foreign"    // an object of another kind
	ReasonNumber     Reason = "number"     // a figure that no firmware prints
	ReasonTooLong    Reason = "too long"   // a line beyond any that firmware prints
	ReasonLength     Reason = "length"     // an array of another length than the model's others
	ReasonModel      Reason = "model"      // a model that the pack has not
)

// object is what a line's object may hold; which fields there were is in has.
type object struct {
	has      map[string]bool
	ints     map[string]float64
	texts    map[string]string
	lists    map[string][]float64
	repaired bool
}

var (
	errCut    = errors.New("cut")
	errSyntax = errors.New("syntax")
)

// scanner reads one flat object: members are numbers, texts, true, false, null, or lists of
// numbers.
type scanner struct {
	b        []byte
	at       int
	repaired bool
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t') {
		s.at++
	}
}

// next returns the next byte that is not space, 0 at the end.
func (s *scanner) next() byte {
	if s.space(); s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

func (s *scanner) take(c byte) error {
	switch s.next() {
	case c:
		s.at++
		return nil
	case 0:
		return errCut
	}
	return errSyntax
}

func (s *scanner) object() (*object, error) {
	o := &object{has: map[string]bool{}, ints: map[string]float64{}, texts: map[string]string{}, lists: map[string][]float64{}}
	if err := s.take('{'); err != nil {
		return nil, err
	}
	for more := true; more; {
		if s.next() == '}' {
			s.repaired = s.repaired || len(o.has) > 0
			break
		}
		key, err := s.text()
		if err != nil {
			return nil, err
		}
		if o.has[key] || len(o.has) > maxModels+1 {
			return nil, errSyntax
		}
		o.has[key] = true
		if err := s.take(':'); err != nil {
			return nil, err
		}
		if err := s.member(o, key); err != nil {
			return nil, err
		}
		if more, err = s.more('}'); err != nil {
			return nil, err
		}
	}
	s.at++
	o.repaired = s.repaired
	return o, nil
}

// more reports whether a comma follows, and no end.
func (s *scanner) more(end byte) (bool, error) {
	switch s.next() {
	case ',':
		s.at++
		return true, nil
	case end:
		return false, nil
	case 0:
		return false, errCut
	}
	return false, errSyntax
}

func (s *scanner) member(o *object, key string) error {
	switch c := s.next(); c {
	case 0:
		return errCut
	case '"':
		v, err := s.text()
		o.texts[key] = v
		return err
	case '[':
		s.at++
		list := []float64{}
		for more := true; more; {
			if s.next() == ']' {
				s.repaired = s.repaired || len(list) > 0
				break
			}
			v, err := s.number()
			if err != nil {
				return err
			}
			if list = append(list, v); len(list) > maxSlots {
				return errSyntax
			}
			if more, err = s.more(']'); err != nil {
				return err
			}
		}
		s.at++
		o.lists[key] = list
		return nil
	default:
		v, err := s.number()
		o.ints[key] = v
		return err
	}
}

// text reads a text; escapes keep the character after the stroke.
func (s *scanner) text() (string, error) {
	if err := s.take('"'); err != nil {
		return "", err
	}
	var out []byte
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return string(out), nil
		case c < ' ' || len(out) > maxName:
			return "", errSyntax
		case c == '\\' && s.at+1 < len(s.b):
			s.at++
			out = append(out, s.b[s.at])
		default:
			out = append(out, c)
		}
	}
	return "", errCut
}

// number reads a number as C prints it; "nan" and "inf" are NaN, as is null.
func (s *scanner) number() (float64, error) {
	s.space()
	from := s.at
	for s.at < len(s.b) && bytes.IndexByte([]byte("+-.0123456789eEnaifNulAIFty()d"), s.b[s.at]) >= 0 {
		s.at++
	}
	word := s.b[from:s.at]
	if s.at == len(s.b) {
		return 0, errCut // a number that the line ends in may be any
	}
	switch string(bytes.ToLower(bytes.TrimLeft(word, "+-"))) {
	case "nan", "inf", "infinity", "nan(ind)", "null":
		return math.NaN(), nil
	}
	// The words of Go that are not numbers of C have none of these bytes.
	if len(word) == 0 || len(word) > 400 || word[0] == '+' || !plainNumber(word) {
		return 0, errSyntax
	}
	v, err := strconv.ParseFloat(string(word), 64)
	if err != nil {
		return 0, errSyntax
	}
	return v, nil
}

// plainNumber reports whether the text is a JSON number: a damaged one such as 12-4 or 0012 is
// none.
func plainNumber(b []byte) bool {
	digits := func() int {
		n := 0
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n
	}
	if b[0] == '-' {
		b = b[1:]
	}
	lead := len(b) > 1 && b[0] == '0' && b[1] >= '0' && b[1] <= '9'
	if digits() == 0 || lead {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		b = b[1:]
		if digits() == 0 {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	return len(b) == 0
}

// message makes a message of an object, or says why it is none.
func (o *object) message() (*Message, Reason) {
	m := &Message{Repaired: o.repaired}
	if o.has["NumModels"] {
		return o.models(m)
	}
	model, ok := o.ints["ModelNumber"]
	if !ok {
		return nil, ReasonForeign
	}
	if !(model >= 0 && model < maxModels) || model != math.Trunc(model) {
		return nil, ReasonNumber
	}
	m.Model = int(model)
	if kind, ok := o.texts["Type"]; ok {
		switch kind {
		case "Cycles":
			return o.counts(m)
		case "Times":
			return o.times(m)
		}
		return nil, ReasonForeign
	}
	return o.result(m)
}

// only reports whether the object has none but these members: another one is a damaged name.
func (o *object) only(names ...string) bool {
	n := 0
	for _, k := range names {
		if o.has[k] {
			n++
		}
	}
	return n == len(o.has)
}

func (o *object) models(m *Message) (*Message, Reason) {
	m.Kind, m.Names = KindMap, map[int]string{}
	if n := o.ints["NumModels"]; !(n >= 0 && n <= maxModels) {
		return nil, ReasonNumber
	}
	for key, name := range o.texts {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < maxModels {
			m.Names[i] = clip(name)
		}
	}
	return m, ""
}

func (o *object) counts(m *Message) (*Message, Reason) {
	list, ok := o.lists["FeatureCycles"]
	last, ok2 := o.ints["ClassifierCycles"]
	switch {
	case !ok || !ok2 || len(list) == 0:
		return nil, ReasonIncomplete
	case !o.only("ModelNumber", "Type", "FeatureCycles", "ClassifierCycles"):
		return nil, ReasonForeign
	}
	// Counts are 32 bits, printed as signed numbers.
	for _, v := range append(list[:len(list):len(list)], last) {
		if !(v >= -1<<31 && v < 1<<32) || v != math.Trunc(v) {
			return nil, ReasonNumber
		}
	}
	m.Kind, m.Slots, m.Classifier = KindCycles, list, last
	return m, ""
}

func (o *object) times(m *Message) (*Message, Reason) {
	list, ok := o.lists["FeatureTimes"]
	last, ok2 := o.ints["ClassifierTime"]
	switch {
	case !ok || !ok2 || len(list) == 0:
		return nil, ReasonIncomplete
	case !o.only("ModelNumber", "Type", "FeatureTimes", "ClassifierTime"):
		return nil, ReasonForeign
	}
	// A counter of 32 bits at the slowest clock there is, a megahertz; -1 is the classifier's word
	// for none.
	for _, v := range list {
		if !(v >= 0 && v < 1<<32/1e6) {
			return nil, ReasonNumber
		}
	}
	if !(last >= 0 && last < 1<<32/1e6) && last != -1 {
		return nil, ReasonNumber
	}
	m.Kind, m.Slots, m.Classifier = KindTimes, list, last
	return m, ""
}

func (o *object) result(m *Message) (*Message, Reason) {
	if !o.only("ModelNumber", "Classification", "Result", "SegmentStart", "SegmentLength", "FeatureVectorLength", "FeatureVector", "OutputSize", "OutputTensor") {
		return nil, ReasonForeign
	}
	m.Kind = KindResult
	integer := func(key string) (*int64, bool) {
		v, ok := o.ints[key]
		if !ok {
			return nil, !o.has[key]
		}
		if !(math.Abs(v) < 1<<53) || v != math.Trunc(v) {
			return nil, false
		}
		return new(int64(v)), true
	}
	class, ok := integer("Classification")
	start, ok2 := integer("SegmentStart")
	length, ok3 := integer("SegmentLength")
	if !ok || !ok2 || !ok3 || class != nil && (*class < -2 || *class > maxSlots) || length != nil && *length < 0 {
		return nil, ReasonNumber
	}
	m.SegmentStart, m.SegmentLength = start, length
	value, regression := o.ints["Result"]
	switch {
	case class != nil && !regression:
		m.Class = new(int(*class))
	case regression && class == nil:
		m.Value = &value
	default:
		return nil, ReasonIncomplete
	}
	m.Vector, m.Tensor = o.lists["FeatureVector"], o.lists["OutputTensor"]
	if n, ok := o.ints["FeatureVectorLength"]; ok && int(n) != len(m.Vector) {
		return nil, ReasonLength
	}
	return m, ""
}

// String writes the message for people, on one line.
func (m *Message) String() string {
	return fmt.Sprintf("model %d %s at line %d", m.Model, m.Kind, m.Line)
}
