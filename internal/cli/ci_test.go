package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/testing/material"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n# ([^\n]*)\n(.*?)^```$")

// listOf, objectOf and scalarOf are parts of a workflow file.
func listOf(v any) []any            { l, _ := v.([]any); return l }
func objectOf(v any) map[string]any { m, _ := v.(map[string]any); return m }
func scalarOf(v any) string         { s, _ := v.(string); return s }

// commandsOf lists the commands of a workflow file, and what its structure lacks.
var commandsOf = map[string]func(doc map[string]any) (commands []string, lacks string){
	".github/workflows/models.yml": func(doc map[string]any) (commands []string, lacks string) {
		if objectOf(doc["on"])["push"] == nil || !strings.Contains(fmt.Sprint(doc["on"]), "pull_request") {
			return nil, "on"
		}
		deep := false
		for _, j := range objectOf(doc["jobs"]) {
			if scalarOf(objectOf(j)["runs-on"]) == "" {
				return nil, "runs-on"
			}
			for _, s := range listOf(objectOf(j)["steps"]) {
				uses, run := scalarOf(objectOf(s)["uses"]), scalarOf(objectOf(s)["run"])
				if uses == "" == (run == "") {
					return nil, "one of uses and run"
				}
				if strings.HasPrefix(uses, "opmeter/opmeter@") {
					with := objectOf(objectOf(s)["with"])
					inputs := actionInputs()
					for name := range with {
						if inputs[name] == nil {
							return nil, "the input " + name + " of action.yml"
						}
					}
					run = "opmeter gate " + strings.Join(strings.Fields(scalarOf(with["flags"])+" "+scalarOf(with["models"])), " ")
				}
				deep = deep || strings.HasPrefix(uses, "actions/checkout@") && fmt.Sprint(objectOf(objectOf(s)["with"])["fetch-depth"]) == "0"
				commands = append(commands, run)
			}
		}
		if !deep {
			return nil, "a checkout with the history"
		}
		return commands, ""
	},
	".gitlab-ci.yml": func(doc map[string]any) (commands []string, lacks string) {
		for _, j := range doc {
			for _, s := range listOf(objectOf(j)["script"]) {
				commands = append(commands, strings.NewReplacer("$OPMETER_FLAGS", "", "$OPMETER_MODELS", "models/").Replace(scalarOf(s)))
			}
			if scalarOf(objectOf(objectOf(j)["variables"])["GIT_DEPTH"]) != "0" {
				return nil, "GIT_DEPTH"
			}
		}
		return commands, ""
	},
	"azure-pipelines.yml": func(doc map[string]any) (commands []string, lacks string) {
		for _, s := range listOf(doc["steps"]) {
			o := objectOf(s)
			if scalarOf(o["script"])+scalarOf(o["task"])+scalarOf(o["checkout"]) == "" {
				return nil, "script, task or checkout"
			}
			commands = append(commands, scalarOf(o["script"]))
		}
		return commands, ""
	},
	".circleci/config.yml": func(doc map[string]any) (commands []string, lacks string) {
		jobs := objectOf(doc["jobs"])
		for _, w := range objectOf(doc["workflows"]) {
			for _, name := range listOf(objectOf(w)["jobs"]) {
				if jobs[scalarOf(name)] == nil {
					return nil, "job " + scalarOf(name)
				}
			}
		}
		for _, j := range jobs {
			for _, s := range listOf(objectOf(j)["steps"]) {
				commands = append(commands, scalarOf(objectOf(s)["run"]))
			}
		}
		return commands, ""
	},
	".opmeter/gate.yaml": nil,
}

// actionInputs are the inputs of action.yml.
func actionInputs() map[string]any {
	var doc map[string]any
	text, err := os.ReadFile(filepath.Join(material.Root(), "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &doc)
	}
	if err != nil {
		panic(err)
	}
	return objectOf(doc["inputs"])
}

// The workflow files of docs/ci.md are YAML of the structure that their services read, their
// commands have flags that exist, and the policy is one.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(material.Root(), "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	template, err := os.ReadFile(filepath.Join(material.Root(), "ci", "gitlab.yml"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := append(yamlBlock.FindAllStringSubmatch(string(page), -1), []string{"", ".gitlab-ci.yml", string(template)})
	for _, m := range blocks {
		name, body := m[1], []byte(m[2])
		seen[name] = true
		if name == ".opmeter/gate.yaml" {
			if _, err := gate.ParsePolicy(body, name); err != nil {
				t.Error(err)
			}
			continue
		}
		check := commandsOf[name]
		if check == nil {
			t.Errorf("%s is not checked", name)
			continue
		}
		var doc map[string]any
		if err := yaml.Unmarshal(body, &doc); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		commands, lacks := check(doc)
		if lacks != "" {
			t.Errorf("%s lacks %s", name, lacks)
		}
		gates := 0
		for _, c := range commands {
			if _, args, ok := strings.Cut(c, "opmeter gate "); ok {
				gates++
				parses(t, "gate "+args)
			}
		}
		if gates != 1 {
			t.Errorf("%s: %d commands of opmeter gate", name, gates)
		}
	}
	for name := range commandsOf {
		if !seen[name] {
			t.Errorf("docs/ci.md lacks %s", name)
		}
	}
	quoted := regexp.MustCompile(`"[^"]*"`)
	n := 0
	for line := range strings.Lines(string(page)) {
		if rest, ok := strings.CutPrefix(line, "    opmeter "); ok {
			n++
			parses(t, quoted.ReplaceAllString(rest, "x"))
		}
	}
	if n < 6 {
		t.Errorf("%d commands found", n)
	}
}

// parses checks that a command and its flags exist.
func parses(t *testing.T, line string) {
	t.Helper()
	c, args, err := newRoot(&app{}).Find(strings.Fields(line))
	if err == nil {
		err = c.ParseFlags(args)
	}
	if err != nil || !c.HasParent() {
		t.Errorf("opmeter %s: %v", line, err)
	}
}
