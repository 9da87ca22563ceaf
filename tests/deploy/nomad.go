// Reads a job as Nomad's command does, refuses what Nomad does not know, and prints it as JSON.
//
//	nomad-jobs [-var NAME=VALUE]... [-service NAME=HOST:PORT]... [-variable PATH=FOLDER]... JOB
//
// Templates are executed: nomadService gives the addresses of -service, nomadVar the files of a folder, a key for each; their results
// are in place of the templates' data.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/jobspec2"
)

type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

type service struct {
	Address string
	Port    int
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What the drivers of Nomad and nomad-driver-podman take, of what jobs here use: their own parsers run in a client.
var drivers = map[string]string{
	"exec":     " command args ",
	"raw_exec": " command args ",
	"podman":   " image args ports readonly_rootfs cap_drop tmpfs network_mode volumes ",
}

func driver(t *api.Task) {
	known, ok := drivers[t.Driver]
	if !ok {
		check(fmt.Errorf("task %s: no driver %s", t.Name, t.Driver))
	}
	for key, value := range t.Config {
		if items, is := value.([]any); is {
			for _, item := range items {
				if _, is := item.(string); !is {
					check(fmt.Errorf("task %s: %s has %v, which is no text", t.Name, key, item))
				}
			}
		}
		if !strings.Contains(known, " "+key+" ") {
			check(fmt.Errorf("task %s: the driver %s has no %s", t.Name, t.Driver, key))
		}
	}
}

func main() {
	var vars, services, variables list
	flag.Var(&vars, "var", "")
	flag.Var(&services, "service", "")
	flag.Var(&variables, "variable", "")
	flag.Parse()
	body, err := os.ReadFile(flag.Arg(0))
	check(err)
	job, err := jobspec2.ParseWithConfig(&jobspec2.ParseConfig{Path: flag.Arg(0), Body: body, ArgVars: vars, Strict: true})
	check(err)
	job.Canonicalize()
	functions := template.FuncMap{
		"nomadService": func(name string) (found []service) {
			for _, s := range services {
				if n, at, _ := strings.Cut(s, "="); n == name {
					host, port, err := net.SplitHostPort(at)
					check(err)
					p, err := strconv.Atoi(port)
					check(err)
					found = append(found, service{host, p})
				}
			}
			return
		},
		"nomadVar": func(path string) (map[string]string, error) {
			for _, v := range variables {
				if p, folder, _ := strings.Cut(v, "="); p == path {
					files, err := filepath.Glob(folder + "/*")
					items := map[string]string{}
					for _, f := range files {
						text, err := os.ReadFile(f)
						check(err)
						items[filepath.Base(f)] = string(text)
					}
					return items, err
				}
			}
			return nil, fmt.Errorf("a job may not read %s, or nobody has written it", path)
		},
	}
	for _, g := range job.TaskGroups {
		for _, t := range g.Tasks {
			driver(t)
			for _, tm := range t.Templates {
				parsed, err := template.New(*tm.DestPath).Option("missingkey=error").Funcs(functions).Parse(*tm.EmbeddedTmpl)
				check(err)
				var out bytes.Buffer
				check(parsed.Execute(&out, nil))
				*tm.EmbeddedTmpl = out.String()
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(job))
}
