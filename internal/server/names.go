package server

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/report/text"
)

// plainName trims a name that a caller gives to a thing. It must show.
func plainName(of, name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", huma.Error422UnprocessableEntity("the name of the " + of + " is empty")
	case strings.ContainsFunc(name, text.Hidden):
		return "", huma.Error422UnprocessableEntity("the name of the " + of + " has control characters or others that do not show: leave them out")
	}
	return name, nil
}

// plainTags is [plainName] for tags.
func plainTags(tags []string) (out []string, err error) {
	for _, t := range tags {
		if len(t) > 200 {
			return nil, huma.Error422UnprocessableEntity("a tag has at most 200 bytes")
		}
		if t, err = plainName("tag", t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
