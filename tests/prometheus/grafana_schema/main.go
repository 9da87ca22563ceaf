// Command grafana_schema reads dashboards as Grafana's own types do, strictly: an unknown field or a wrong type is an error.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The types return a list of errors, which may be empty.
func none(err error) bool { return err == nil || err.Error() == "" }

func main() {
	plugins.RegisterDefaultPlugins()
	failed := false
	for _, path := range os.Args[1:] {
		var d dashboard.Dashboard
		text, err := os.ReadFile(path)
		if none(err) {
			err = d.UnmarshalJSONStrict(text)
		}
		if none(err) {
			err = d.Validate()
		}
		if !none(err) {
			fmt.Printf("%s: %v\n", path, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
