// Compares versions of CustomResourceDefinitions with crdify under the settings of OLM v1 (operator-controller, package
// crdupgradesafety), as the oracle for `bundle diff`.
//
// Each line of standard input is a JSON array of two CustomResourceDefinitions, the older one first. The answer is a line with
// a sorted array of texts `VERSION PROPERTY RULE`. A field that was removed with all fields in it is named once.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

// Settings of operator-controller v1.11.0.
var settings = &config.Config{
	Conversion:           config.ConversionPolicyIgnore,
	UnhandledEnforcement: config.EnforcementPolicyError,
	Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{
			Name:          "enum",
			Enforcement:   config.EnforcementPolicyError,
			Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow},
		},
	},
}

func main() {
	checks, err := runner.New(settings, runner.DefaultRegistry())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var pair [2]apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(line, &pair); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		// A bundle lacks the status. In the cluster, the version that is written is stored for certain.
		for _, one := range pair[0].Spec.Versions {
			if one.Storage {
				pair[0].Status.StoredVersions = append(pair[0].Status.StoredVersions, one.Name)
			}
		}
		if err := answers.Encode(findings(checks.Run(&pair[0], &pair[1]))); err != nil {
			os.Exit(1)
		}
	}
}

func findings(results *runner.Results) []string {
	found := []string{}
	removed := map[string]bool{}
	for _, result := range results.CRDValidation {
		for _, message := range result.Errors {
			if result.Name != "existingFieldRemoval" {
				found = append(found, fmt.Sprintf("- - %s", result.Name))
				continue
			}
			// "removed field : v1.^.spec.a"
			_, field, _ := strings.Cut(message, " : ")
			removed[strings.Replace(field, ".", " ", 1)] = true
		}
	}
	inside := func(field string) bool {
		for other := range removed {
			if field != other && (strings.HasPrefix(field, other+".") || strings.HasPrefix(field, other+"[")) {
				return true
			}
		}
		return false
	}
	for field := range removed {
		if !inside(field) {
			found = append(found, field+" existingFieldRemoval")
		}
	}
	properties := func(versions []version.VersionedPropertyComparisonResult) {
		for _, one := range versions {
			for _, changed := range one.PropertyComparisons {
				// The comparison with nothing, of a field that is gone.
				field := one.Version + " " + changed.Property
				if removed[field] {
					continue
				}
				for _, result := range changed.ComparisonResults {
					if len(result.Errors) > 0 {
						found = append(found, field+" "+result.Name)
					}
				}
			}
		}
	}
	properties(results.SameVersionValidation)
	properties(results.ServedVersionValidation)
	slices.Sort(found)
	return slices.Compact(found)
}
