// Reads a Compose file as Docker Compose does, refuses what the Compose specification does not know, and prints it as JSON.
//
//	compose FILE
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func read() ([]byte, error) {
	o, err := cli.NewProjectOptions(os.Args[1:], cli.WithOsEnv, cli.WithDotEnv, cli.WithName("shoal"), cli.WithDefaultProfiles("*"))
	if err != nil {
		return nil, err
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	return p.MarshalJSON()
}

func main() {
	out, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Stdout.Write(out)
}
