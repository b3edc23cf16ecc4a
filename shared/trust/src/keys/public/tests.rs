use super::*;

/// Public key of both P-384 rows.
const P384: &str = concat!(
    "-----BEGIN PUBLIC KEY-----\n",
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE30g0kaAVk1c45TiplVo22fMTOgvvJwNC\n",
    "Sqtnc94ZvFfNXGeod49A4ew1WnpIeE6UJ4t0B4au0JkzsYwK6EZxIn65JHzanefA\n",
    "evFqwQ2lXLpDabRJX9TTV2rfKmW3iA73\n",
    "-----END PUBLIC KEY-----\n",
);

/// Keys and signatures made by OpenSSL 3: `openssl genpkey`, `openssl pkey -pubout`, and a signature of `message`, by
/// `openssl dgst -sha256 -sign` or, for Ed25519, `openssl pkeyutl -sign -rawin`.
const MADE_BY_OPENSSL: &[(&str, &str, &str)] = &[
    (
        "Ed25519",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MCowBQYDK2VwAyEAhsGdTsykBmp5QPDcDovxSroFaPxsi6G4623JY4ONqBk=\n",
            "-----END PUBLIC KEY-----\n",
        ),
        "Hhxgw2kk2O08Ulg5QDw7SfGReK5Z9Bvq7st9Rpzmv2ymWVR3K/tEc11oCjKgGIM+/YJOtsZagfF5ByUDnPyLDg==",
    ),
    (
        "P-256",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtWIJud1TUTX6TIDRve2Xqkx0If9j\n",
            "vWQ9ygdhRHw+/2BqEwuwmnQtdw5MS+BzSRQI6Ke0IVK5SIOXzD7MLfyhrg==\n",
            "-----END PUBLIC KEY-----\n",
        ),
        "MEUCIQCrmdlEJHpaiRYZ42mHph7Wu8mvGdhI5FAgZa0fytwHEwIgbekgK1pbTlwhu4rHyH5cKrIgQ+RjvaffnQsfWE1yIv4=",
    ),
    (
        "P-384",
        P384,
        concat!(
            "MGUCMQDU8Iv/nQumGh2cam8knJ7SYoErtpixvdirAb1I27W42xXsba/jX/iOm08fAuIMgjACMGA7lSQMtVeXZRMNUDw02sjy",
            "JLPodUXKtP4LDmAUE7ycbXzN1wSLYVubeduS0kv1JQ==",
        ),
    ),
    (
        "P-384 over sha384",
        P384,
        concat!(
            "MGUCMAEGJawU13JyXDNuobTkSnzcOCFsC9z+tbxtfzoLW13MqDZ89tabpfYhJpZ1kbjPhQIxAM9E9NWQkGKNm9gKa3RobFaK",
            "QEDQkmqUSzH64yzOwO2sEZ2a3WmpAoiZ/A0aEZEDyQ==",
        ),
    ),
    (
        "RSA-2048",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAnOi7vARZ5pqjQg0PZ0Ab\n",
            "hxGL0DSUY3py7xAgAYB9ZZygSbmrw4TOCJ+rKehy0hKgqCQSfsU8fl5kvURpkHbU\n",
            "brNrevqpmnD68JcS0bWoEOQAkg1ITcuQi0i3KhgxHm9LczMVrwWRIcjYysWgPVIr\n",
            "VCr+dUW4QEKuZRIGd2tuZhoxFGJaR1DOPJk3ZSCooLNSyRrFCvdyKtaZ8FcyuymR\n",
            "9o04JPdpf8L3y324ZPOu+x0IZ96xlb/azUGEvSXaywte7kxhbNythrg9nY3rwrs0\n",
            "RaN0WVYAYscMg8xEtd0161DVPth9mu6qvSJKSzKGFkehhRxujovwJF2+OKa5qZsN\n",
            "0QIDAQAB\n",
            "-----END PUBLIC KEY-----\n",
        ),
        concat!(
            "DfPHdYpuZ5UhXC8df/Q0d5AUTYpnaZ9g7ErPq1YEx/iYOBG9FLX8FIk7a77GNaaj348RP3Y2L+8/luW6Znzbu9U9BNBWEPiN",
            "BLYRvubQ27liH/06DRlJMYnvhSbUGmRrs1DVj0ZwMPzYUw7FOQEP+IQqg0B95tUR2MeOb15HhPGWHYrrkzTDMm0fThGtpSrK",
            "FAXkr7eDp2drqP8Flbh+onCX9+oXp8LZDKX2mDkyMu3e70Jtf3uidxRve4/UsUVX4DrUmj7h0/R63VqBzlwortJKR4uXtZPw",
            "M0Zvm6ADGanpIyNHj4cQFXzzXtTBOzDebW7zKOeca0JZtZqCz3rzBg==",
        ),
    ),
    (
        "RSA-4096",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MIICIjANBgkqhkiG9w0BAQEFAAOCAg8AMIICCgKCAgEA4SxV4ImBW68xbL5siZXV\n",
            "Gt4ihaMTR1xc25A5nBalGPYRTrmGTa6NL0+DBCYPZWD+6fr4sDvpnEYpZ1vkqsBq\n",
            "dDCumbyL33ork5UNRc03py4RnqX8tvH9o5MpzAoimVyuciN2UgUJfoUaoIhm6Mdc\n",
            "NLSv5BLfN3ZyOGugQgR+fqAmgl0HMh/0kNyszhkKXpOoWaPPJTawJnJZdiRKI4Ng\n",
            "h81KBtUdrRHc7KVRdOsq9Wu0gmd7CGI6HibXz0k7H8tXt/Gi5ueGDNwWQETCT00S\n",
            "vo/KXSpCOLkHy/XLZvvNQqgXnCl6nHGazt82vPs5NToQR9aaBJXYPY+k1ad7RU0r\n",
            "WCYGTZ1HRgOIASNWY+LMzjQQ3Ox8TJ9e0WOxuidnhq35LoACZXuS+9ftjKy1hEat\n",
            "PEnLdoHFkwbeQVpEiRnJ0RMZ4SJ4THma5CRHVimvVTVNgYzf+4DW2vUw3gPSgoNI\n",
            "y/7iCeZxz2NYySIvs/6DyOqSiNtOPC53swpv9IXe/UkV1POeLYuzGo5vwlGZfJ2h\n",
            "54tln8yX+mf22jCvpEbnftWb4jkleGKUBoBC8rmkUmIeT1Jp0e3Z6nAP/k3P+k5B\n",
            "wzYaon2QUY9fFasINSAonXp0p3c3sw8hv3sycC01ffgTXdQ3FhFbXMcyfCRrXhEN\n",
            "Fu17ebsLQbhXouozQK5OOQsCAwEAAQ==\n",
            "-----END PUBLIC KEY-----\n",
        ),
        concat!(
            "f0yn+xBwV1AjeM1Yybok78NChEu8F9aK2rxt6EQNGIZV2O0HqG8a2cPMr9IpKwbimtSKpvFTxsixdIrOcvuq5DI+79cyvgr9",
            "e7SICVxDBduGXMw/bxVqscbjlrOD6XLS6SO7Ik0REW9B9eRCUK1gF+pp9G2oMkJNs05RWwCUe4/BZTHLDuJp97aeQlt9ZuvK",
            "IQo4xk6Mtm1h3+F/iXBjU7YhslffPy0wpdUtKrTQE/O6kUtxCkJcQECUTFOMX0q0qvJDQOPYaMp/zOXfWTnPt/pu1aXbHIeA",
            "HI0d3ux0IlvSNsDX6Bux8LhJwf/lsyPzz9KSgIYspQgfKhSOk+4K7guxGKhxfI3cczAA4XZ7eyacgN3CK5S4yJDblnx9pehq",
            "cZmLs+LCOe93yXEnYcQVyrUMteOLmZlJCQGJkBzf4CpXTbZxvjWR4LBrf/jr3nTVNaVWSk3aNgkRmObUOR2DQXJpudcd2bfo",
            "nz5qUHiVGTtshxewOPy4hmn6oi5b2TU1lTCmvhVVd0eO036rLm7SChrlGkkQJeX3fRIXDiz2AspAhJc59W6G0T8ZyL4CqtY9",
            "fy4HYdUPtXtLEMc+MeWdz9Y9lCl/wv0+MWbriAT3VgEg/FCv/0QbfjoyIFiphXGU7n+DkxjRDt1ftQ+/oWSx3+gy/htGfhpn",
            "l02CTiM9MxI=",
        ),
    ),
];

/// Keys that are refused when they are read, each with the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "weak",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCeZeLQUSBteGmFB/D/4qN34AFE\n",
            "yGt+/DQppS8VwubPMDIzsnLoq/1dKi19qgwa3QvX9PBfhRYPcL/nsejdALBNy0ZI\n",
            "vtPCZhohRdzP2PptCfO9fJwOVwAt2zT8N6xuU1cBTYws7yrNhsnoHAIISyJqAXCu\n",
            "bbxlfWdx2jx4o9abmQIDAQAB\n",
            "-----END PUBLIC KEY-----\n",
        ),
    ),
    (
        "kind",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBmP8Tqh8nHTwdrW677DYIRaIeiYWR\n",
            "ivLubbpfC9e7HhA6KNY90RauxSIxhgBlp+ZTMm1hKI4DILp2XmKJr4q0r6kBOpzG\n",
            "ZzGzs2lrkTW/yukcRDw4pk61oYPNnW0+BrFtCCq7tlcDN4iPy2LSjG7epfILO9JL\n",
            "qVAjqC1PvgBPRaSwxCs=\n",
            "-----END PUBLIC KEY-----\n",
        ),
    ),
    (
        "kind",
        concat!(
            "-----BEGIN PUBLIC KEY-----\n",
            "MEMwBQYDK2VxAzoA+LOvviATZPuLdxXp57hsMef99+85xIPzpXYr7rtSSf7hQ4p/\n",
            "IXMYyGu77zHDgAr+vuYMyLm/n8wA\n",
            "-----END PUBLIC KEY-----\n",
        ),
    ),
];

fn key(pem: &str) -> PublicKey {
    PublicKey::from_pem(pem.as_bytes()).unwrap().remove(0)
}

fn signature(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[test]
fn each_kind_of_key_verifies_signatures_of_openssl() {
    for (kind, pem, text) in MADE_BY_OPENSSL {
        let key = key(pem);
        assert!(key.verifies(b"message", &signature(text)), "{kind}");
        assert_eq!(key.to_pem(), *pem);
        assert!(format!("{key:?}").contains(&key.id().to_string()));
    }
}

#[test]
fn verifies_refuses_another_message_signature_or_key() {
    for (kind, pem, text) in MADE_BY_OPENSSL {
        let key = key(pem);
        assert!(!key.verifies(b"massage", &signature(text)), "{kind}");
        assert!(!key.verifies(b"message", b""), "{kind}");
        let mut altered = signature(text);
        *altered.last_mut().unwrap() ^= 1;
        assert!(!key.verifies(b"message", &altered), "{kind}");
        for (other, pem, _) in MADE_BY_OPENSSL.iter().filter(|(_, other, _)| other != pem) {
            assert!(
                !self::key(pem).verifies(b"message", &signature(text)),
                "{kind} by {other}"
            );
        }
    }
}

#[test]
fn from_pem_reads_several_keys() {
    let text: String = MADE_BY_OPENSSL.iter().map(|(_, pem, _)| *pem).collect();
    let keys = PublicKey::from_pem(text.as_bytes()).unwrap();
    let expected: Vec<_> = MADE_BY_OPENSSL.iter().map(|(_, pem, _)| key(pem)).collect();
    assert_eq!(keys, expected);
}

#[test]
fn from_text_reads_keys_without_line_breaks() {
    let keys: Vec<_> = MADE_BY_OPENSSL[..2].iter().map(|(_, pem, _)| key(pem)).collect();
    let words: Vec<_> = keys.iter().map(|key| STANDARD.encode(&key.der)).collect();
    assert_eq!(PublicKey::from_text(&words.join(", ")).unwrap(), keys);
    assert_eq!(PublicKey::from_text(MADE_BY_OPENSSL[1].1).unwrap(), keys[1..]);
    for text in ["", ",", "x", "MCowBQ=="] {
        assert!(PublicKey::from_text(text).is_err(), "{text}");
    }
}

#[test]
fn unusable_keys_are_refused_when_read() {
    for (why, pem) in REFUSED {
        let error = PublicKey::from_pem(pem.as_bytes()).unwrap_err();
        let fits = match *why {
            "weak" => matches!(error, KeyError::Unusable("RSA")),
            "kind" => matches!(error, KeyError::Kind(_)),
            _ => false,
        };
        assert!(fits, "{why}: {error:?}");
    }
    let cut = pem("PUBLIC KEY", &key(MADE_BY_OPENSSL[0].1).der[..20]);
    assert!(matches!(
        PublicKey::from_pem(cut.as_bytes()),
        Err(KeyError::Malformed(_))
    ));
    let private = pem("PRIVATE KEY", b"x");
    assert!(matches!(
        PublicKey::from_pem(private.as_bytes()),
        Err(KeyError::Private)
    ));
    for text in ["", "ssh-ed25519 AAAA", "-----BEGIN PUBLIC KEY-----\n"] {
        assert!(PublicKey::from_pem(text.as_bytes()).is_err(), "{text}");
    }
}
