package main

import "runtime/debug"

// version is the module's version, as the Go tools stamp it into a build: "devel" in a working copy.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
